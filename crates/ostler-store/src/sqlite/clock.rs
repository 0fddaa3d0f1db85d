//! Time: what the clock on the wall shows, and what has really passed.
//!
//! Somebody can set the clock on the wall, forwards or backwards, so no lease depends on it: leases run on the steady clock,
//! counted from when the store was opened. What is meant for people (when something happened, when it is due) goes
//! by the wall.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// Where a store gets the time from.
pub trait Clock: Send + Sync + 'static {
    /// What the clock on the wall shows. It may jump in both directions.
    fn wall(&self) -> Timestamp;

    /// How much time has passed since some moment. It never jumps.
    fn steady(&self) -> Duration;
}

/// The clocks of the machine.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        // Before 1970 a machine has no idea of the time; everything is due later then.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::default().after(since)
    }

    fn steady(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The time as one opened store tells it.
#[derive(Clone)]
pub(super) struct Time {
    clock: Arc<dyn Clock>,
    opened_wall: Timestamp,
    opened_steady: Duration,
}

impl Time {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (opened_wall, opened_steady) = (clock.wall(), clock.steady());
        Self { clock, opened_wall, opened_steady }
    }

    pub(super) fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    /// The time by which leases run.
    pub(super) fn steady(&self) -> Timestamp {
        self.opened_wall.after(self.clock.steady().saturating_sub(self.opened_steady))
    }
}
