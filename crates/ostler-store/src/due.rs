//! Timers.

use crate::{Body, Timestamp};

/// A timer. The first server that claims it when it is due performs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// Unique among all timers.
    pub id: String,
    /// The earliest time it may be performed.
    pub at: Timestamp,
    /// What to do, as JSON.
    pub body: Body,
}

/// The right to perform a due timer, for a limited time. If it expires without [`crate::Store::complete`], another
/// server may claim the timer.
#[derive(Clone, Debug, PartialEq)]
pub struct DueClaim {
    /// The timer. Its `at` is the scheduled time, which may be long ago.
    pub due: Due,
    /// The server that holds the claim.
    pub owner: String,
    /// Unique among all claims ever made.
    pub epoch: u64,
    /// When the claim expires, by the store's clock.
    pub until: Timestamp,
}
