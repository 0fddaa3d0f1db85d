//! Wall-clock time and elapsed time.
//!
//! The wall clock can be set forwards or backwards, so leases do not depend on it: they use a monotonic clock,
//! counted from when the store was opened. Times for people (when an event happened, when a timer is due) use the
//! wall clock.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Timestamp;

/// Where a store gets the time from.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock. It may jump in both directions.
    fn wall(&self) -> Timestamp;

    /// Time elapsed since a fixed moment. It never jumps.
    fn steady(&self) -> Duration;
}

/// The machine's clocks.
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
        // A clock before 1970 is not set; nothing is due then.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::default().after(since)
    }

    fn steady(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The clocks of one open store.
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

    /// The monotonic time that leases use.
    pub(super) fn steady(&self) -> Timestamp {
        self.opened_wall.after(self.clock.steady().saturating_sub(self.opened_steady))
    }
}
