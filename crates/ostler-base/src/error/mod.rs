//! Refusals: the one format in which the server refuses a request (`refusal.rs`), and internal failures as refusals
//! (`inside.rs`).

mod inside;
mod refusal;

pub use self::inside::{Fallible, internal, is_of_store, not_found};
pub use self::refusal::{
    ApiError, ErrorBody, JsonBody, Object, OptionalBody, PathOf, QueryOf, no_such_method,
    no_such_path, shown,
};
