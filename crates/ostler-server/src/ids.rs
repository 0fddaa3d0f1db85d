//! Names of things: a word for what it is, and randomness that nobody can guess.

use uuid::Uuid;

/// A new name such as `run_5f0c…`.
pub(crate) fn new(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}
