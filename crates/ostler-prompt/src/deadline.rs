//! [`Deadline`]: until when a run may go on.

use std::time::{Duration, Instant};

/// Until when a run may go on.
///
/// From that moment every tool call is denied with `Deadline exceeded`, and the run ends with
/// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded), whatever it waits for: a tool, or a model that never
/// answers. With a [grace](Deadline::with_grace) the model has so much longer to say what it has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Instant,
    grace: Duration,
}

impl Deadline {
    /// At this moment.
    pub fn at(at: Instant) -> Self {
        Self { at, grace: Duration::ZERO }
    }

    /// So long from now.
    pub fn after(duration: Duration) -> Self {
        let now = Instant::now();
        // A time that no clock reaches is as good as a century.
        let century = Duration::from_secs(100 * 365 * 24 * 3600);
        Self::at(now.checked_add(duration).unwrap_or(now + century))
    }

    /// Tools are denied at the deadline, and the run ends so much later if it has not by itself.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The moment.
    pub fn instant(&self) -> Instant {
        self.at
    }

    /// How long it is till then; zero when it has passed.
    pub fn remaining(&self) -> Duration {
        self.remaining_at(Instant::now())
    }

    /// The same, at some moment.
    pub fn remaining_at(&self, now: Instant) -> Duration {
        self.at.saturating_duration_since(now)
    }

    /// Whether it has passed; the moment itself counts as passed.
    pub fn has_passed(&self) -> bool {
        self.has_passed_at(Instant::now())
    }

    /// The same, at some moment.
    pub fn has_passed_at(&self, now: Instant) -> bool {
        self.remaining_at(now).is_zero()
    }

    /// When the run ends.
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
    fn no_length_is_too_long() {
        assert!(!Deadline::after(Duration::MAX).with_grace(Duration::MAX).has_passed());
    }
}
