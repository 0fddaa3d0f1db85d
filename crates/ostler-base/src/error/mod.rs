//! Refusals: the one shape in which the server says no (`refusal.rs`), and what goes wrong inside as one of them (`inside.rs`).

mod inside;
mod refusal;

pub use self::inside::{Fallible, internal, is_of_store, not_found};
pub use self::refusal::{
    ApiError, ErrorBody, JsonBody, Object, OptionalBody, PathOf, QueryOf, no_such_method,
    no_such_path, shown,
};
