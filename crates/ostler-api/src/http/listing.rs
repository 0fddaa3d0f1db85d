//! Lists and pages of lists.

use ostler_base::error::{ApiError, Fallible};
use ostler_door::users::{Caller, Role};
use ostler_store::{Filter, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list, or a page of one.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listing<T> {
    pub(crate) items: Vec<T>,
}

/// The maximum number of items in one response.
pub(crate) const MOST: usize = 500;

/// Which page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// Only items after this id.
    pub(crate) after: Option<String>,
    /// The maximum number of items.
    #[schemars(range(min = 1, max = 500))]
    pub(crate) limit: Option<usize>,
}

impl PageQuery {
    pub(crate) fn page(self) -> Fallible<Page> {
        Ok(Page { after: self.after, limit: limit(self.limit)?, ..Page::default() })
    }

    /// The same for lists that formerly had no pages: as many items as one response may have, unless the client wants
    /// fewer.
    pub(crate) fn whole_page(self) -> Fallible<Page> {
        Self { limit: self.limit.or(Some(MOST)), ..self }.page()
    }
}

pub(crate) fn limit(requested: Option<usize>) -> Fallible<usize> {
    match requested.unwrap_or(100) {
        limit @ 1..=MOST => Ok(limit),
        _ => Err(ApiError::invalid("limit", "the limit must be between 1 and 500")),
    }
}

/// Selects the records that the caller may see.
pub(crate) fn seen_by(caller: &Caller) -> Filter {
    Filter { owner: (caller.role < Role::Admin).then(|| caller.user.clone()), ..Filter::default() }
}
