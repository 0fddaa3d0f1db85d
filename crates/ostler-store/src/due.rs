//! Things to be done at a time.

use crate::{Body, Timestamp};

/// Something to be done at a time, by whichever server comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// Which; there is one of an id.
    pub id: String,
    /// Not before this.
    pub at: Timestamp,
    /// What.
    pub body: Body,
}

/// The right to do what is due, for a while. When it ends without [`crate::Store::complete`], somebody else gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct DueClaim {
    /// What is to be done. Its `at` is the time it was meant for, which may be long ago.
    pub due: Due,
    /// Who does it.
    pub owner: String,
    /// A number that no other claim ever has.
    pub epoch: u64,
    /// When others may claim it, by the clock of the store.
    pub until: Timestamp,
}
