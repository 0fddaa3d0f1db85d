//! Lists, and parts of them.

use ostler_store::{Filter, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::{ApiError, Fallible};
use crate::security::users::{Caller, Role};

/// A list, or a part of one.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listing<T> {
    pub(crate) items: Vec<T>,
}

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
}

pub(crate) fn limit(said: Option<usize>) -> Fallible<usize> {
    match said.unwrap_or(100) {
        limit @ 1..=500 => Ok(limit),
        _ => Err(ApiError::invalid("limit", "a limit is between 1 and 500")),
    }
}

/// What the caller may see.
pub(crate) fn seen_by(caller: &Caller) -> Filter {
    Filter { owner: (caller.role < Role::Admin).then(|| caller.user.clone()), ..Filter::default() }
}
