//! [`Deadline`]: when a run must end.

use std::time::{Duration, Instant};

/// When a run must end.
///
/// From then on every tool call is denied with `Deadline exceeded`, and the run ends with
/// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded), even if a tool is running or the model does not answer.
/// With a [grace](Deadline::with_grace) period the model has that much more time to report what it has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    grace: Duration,
}

impl Deadline {
    /// A deadline at this time.
    pub fn at(at: Instant) -> Self {
        Self { at, grace: Duration::ZERO }
    }

    /// A deadline this long from now.
    pub fn after(duration: Duration) -> Self {
        let now = Instant::now();
        // If the time overflows, the deadline is in a century.
        let century = Duration::from_secs(100 * 365 * 24 * 3600);
        Self::at(now.checked_add(duration).unwrap_or(now + century))
    }

    /// Denies tool calls at the deadline, but ends the run only `grace` later if it has not ended by itself.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The time of the deadline.
    pub fn instant(&self) -> Instant {
        self.at
    }

    /// The remaining time; zero after the deadline.
    pub fn remaining(&self) -> Duration {
        self.remaining_at(Instant::now())
    }

    /// The remaining time at `now`.
    pub fn remaining_at(&self, now: Instant) -> Duration {
        self.at.saturating_duration_since(now)
    }

    /// Whether the deadline has passed; it has passed when the remaining time is zero.
    pub fn has_passed(&self) -> bool {
        self.has_passed_at(Instant::now())
    }

    /// Whether the deadline has passed at `now`.
    pub fn has_passed_at(&self, now: Instant) -> bool {
        self.remaining_at(now).is_zero()
    }

    /// When the run ends: at the deadline plus the grace period.
    pub(crate) fn end(&self) -> Instant {
        self.at.checked_add(self.grace).unwrap_or(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_itself_counts_as_passed() {
        let now = Instant::now();
        let (tick, deadline) = (Duration::from_nanos(1), Deadline::at(now));
        assert!(!deadline.has_passed_at(now - tick));
        assert_eq!(deadline.remaining_at(now - tick), tick);
        assert!(deadline.has_passed_at(now));
        assert!(deadline.has_passed_at(now + tick));
        assert_eq!(deadline.remaining_at(now + tick), Duration::ZERO);
    }

    #[test]
    fn a_grace_moves_the_end_and_not_the_deadline() {
        let now = Instant::now();
        let deadline = Deadline::at(now).with_grace(Duration::from_secs(5));
        assert!(deadline.has_passed_at(now));
        assert_eq!(deadline.end(), now + Duration::from_secs(5));
    }

    #[test]
    fn a_very_long_deadline_does_not_overflow() {
        assert!(!Deadline::after(Duration::MAX).with_grace(Duration::MAX).has_passed());
    }
}
