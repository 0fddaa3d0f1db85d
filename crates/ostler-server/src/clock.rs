//! The time of day, in milliseconds since 1970, as records have it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time. A value, so that a test can have its own.
#[derive(Clone)]
pub(crate) struct Clock(std::sync::Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    pub(crate) fn system() -> Self {
        Self(std::sync::Arc::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        }))
    }

    pub(crate) fn now(&self) -> u64 {
        (self.0)()
    }
}
