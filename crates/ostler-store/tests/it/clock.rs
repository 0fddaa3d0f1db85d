//! A clock that a test moves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_store::Timestamp;
use ostler_store::sqlite::Clock;

#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<(Timestamp, Duration)>>);

impl TestClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new((Timestamp::from_millis(1_000_000_000), Duration::ZERO))))
    }

    /// Advances both clocks.
    pub(crate) fn pass(&self, time: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = (now.0.after(time), now.1 + time);
    }

    /// Sets the wall clock forwards or backwards.
    pub(crate) fn set_wall(&self, seconds: i64) {
        let mut now = self.0.lock().unwrap();
        now.0 = Timestamp::from_millis(now.0.as_millis() + seconds * 1000);
    }
}

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        self.0.lock().unwrap().0
    }

    fn steady(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}
