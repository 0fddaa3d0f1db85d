//! The time of day in milliseconds since 1970, as stored in records.

use std::sync::Arc;

/// The clock of the store, so that timers and records agree and a test can have its own clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn ostler_store::sqlite::Clock>);

impl Clock {
    pub fn new(clock: Arc<dyn ostler_store::sqlite::Clock>) -> Self {
        Self(clock)
    }

    pub fn now(&self) -> u64 {
        u64::try_from(self.0.wall().as_millis()).unwrap_or(0)
    }
}

/// The day of a time in UTC, such as `2026-11-16`.
pub fn day(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(|it| jiff::Timestamp::from_millisecond(it).ok());
    time.unwrap_or(jiff::Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC).date().to_string()
}
