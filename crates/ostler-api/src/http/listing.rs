//! Lists, and parts of them.

use ostler_base::error::{ApiError, Fallible};
use ostler_door::users::{Caller, Role};
use ostler_store::{Filter, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list, or a part of one.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listing<T> {
    pub(crate) items: Vec<T>,
}

/// The most that one answer lists.
pub(crate) const MOST: usize = 500;

/// Which part.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// Only what comes after this id.
    pub(crate) after: Option<String>,
    /// At most so many.
    #[schemars(range(min = 1, max = 500))]
    pub(crate) limit: Option<usize>,
}

impl PageQuery {
    pub(crate) fn page(self) -> Fallible<Page> {
        Ok(Page { after: self.after, limit: limit(self.limit)?, ..Page::default() })
    }

    /// The same for lists that had no pages once: all that one answer may have, unless the client says less.
    pub(crate) fn whole_page(self) -> Fallible<Page> {
        Self { limit: self.limit.or(Some(MOST)), ..self }.page()
    }
}

pub(crate) fn limit(said: Option<usize>) -> Fallible<usize> {
    match said.unwrap_or(100) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(ApiError::invalid("limit", "a limit is between 1 and 500")),
    }
}

/// What the caller may see.
pub(crate) fn seen_by(caller: &Caller) -> Filter {
    Filter { owner: (caller.role < Role::Admin).then(|| caller.user.clone()), ..Filter::default() }
}
