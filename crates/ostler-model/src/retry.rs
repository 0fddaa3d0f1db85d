//! Whether to retry after a failed attempt, when, and with which model. Pure: time and randomness come from the caller.

use std::time::{Duration, SystemTime};

use super::{FallbackTrigger, ModelError};

/// How often a request is retried, and with which pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts after the first.
    pub max_retries: u32,
    /// The pause after the first failure; it doubles with every further one.
    pub first_delay: Duration,
    /// The longest such pause.
    pub longest_delay: Duration,
    /// The longest pause that the API may ask for. When it asks for more, the user sees the error instead.
    pub longest_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(32),
            longest_retry_after: Duration::from_secs(60),
        }
    }
}

/// How much a pause varies, so that clients that failed together do not retry together.
const JITTER: f64 = 0.25;
/// A refused key may just be being replaced; more attempts would only hide a wrong key.
const MAX_RETRIES_UNAUTHORIZED: u32 = 2;
/// After this many overloads in a row another model takes over.
const OVERLOADS_BEFORE_FALLBACK: u32 = 3;

/// A failed attempt, and what the API advises to do about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FailedAttempt {
    pub(crate) error: ModelError,
    /// The pause the API asks for.
    pub(crate) retry_after: Option<Duration>,
    /// The API's advice whether to retry.
    pub(crate) should_retry: Option<bool>,
}

impl From<ModelError> for FailedAttempt {
    fn from(error: ModelError) -> Self {
        Self { error, retry_after: None, should_retry: None }
    }
}

/// What to do after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    Retry { delay: Duration },
    FallBack(FallbackTrigger),
    GiveUp,
}

/// The attempts at one request with one model.
#[derive(Clone, Debug)]
pub(crate) struct AttemptCounter {
    policy: RetryPolicy,
    has_fallback: bool,
    n_failed: u32,
    n_unauthorized: u32,
    n_overloads: u32,
}

impl AttemptCounter {
    pub(crate) fn new(policy: RetryPolicy, has_fallback: bool) -> Self {
        Self { policy, has_fallback, n_failed: 0, n_unauthorized: 0, n_overloads: 0 }
    }

    pub(crate) fn n_failed(&self) -> u32 {
        self.n_failed
    }

    /// Decides what to do after a failed attempt. `jitter` is a random number from 0 to 1.
    pub(crate) fn failed(&mut self, failure: &FailedAttempt, jitter: f64) -> RetryDecision {
        self.n_failed += 1;
        let is_overloaded = failure.error.is_overloaded();
        self.n_overloads = if is_overloaded { self.n_overloads + 1 } else { 0 };
        self.n_unauthorized += u32::from(failure.error.status() == Some(401));
        let delay = self.delay(failure.retry_after, jitter);
        let delay =
            delay.filter(|_| self.n_failed <= self.policy.max_retries && self.can_help(failure));
        let trigger = self.has_fallback.then(|| self.trigger(&failure.error, delay.is_none()));
        match (trigger.flatten(), delay) {
            (Some(trigger), _) => RetryDecision::FallBack(trigger),
            (None, Some(delay)) => RetryDecision::Retry { delay },
            (None, None) => RetryDecision::GiveUp,
        }
    }

    /// Why another model takes over now, if it does, as observed with the vendor's program. `is_final` if this model is
    /// not asked again.
    fn trigger(&self, error: &ModelError, is_final: bool) -> Option<FallbackTrigger> {
        let ModelError::Status { status, .. } = error else { return None };
        match *status {
            _ if error.is_overloaded() => {
                let is_enough = is_final || self.n_overloads >= OVERLOADS_BEFORE_FALLBACK;
                is_enough.then_some(FallbackTrigger::Overloaded)
            }
            500.. => Some(FallbackTrigger::ServerError),
            404 => Some(FallbackTrigger::ModelNotFound),
            // Every model would refuse the same key, account or conversation.
            _ if error.is_same_for_every_model() => None,
            400..500 if is_final => Some(FallbackTrigger::LastResort),
            _ => None,
        }
    }

    /// Whether a retry of the same request could succeed.
    fn can_help(&self, failure: &FailedAttempt) -> bool {
        match (&failure.error, failure.should_retry) {
            (ModelError::Status { status: 401, .. }, advice) => {
                advice != Some(false) && self.n_unauthorized <= MAX_RETRIES_UNAUTHORIZED
            }
            (_, Some(advice)) => advice,
            (ModelError::Status { status, .. }, None) => {
                matches!(status, 408 | 409 | 429 | 500..)
            }
            (ModelError::Connection(_) | ModelError::Protocol(_), None) => true,
            // A retry would fail in the same way.
            (
                ModelError::Broken(_)
                | ModelError::TooLarge(_)
                | ModelError::Recording(_)
                | ModelError::NotLoggedIn,
                None,
            ) => false,
        }
    }

    /// The pause before the next attempt; `None` when the API asks for a longer one than is acceptable.
    fn delay(&self, retry_after: Option<Duration>, jitter: f64) -> Option<Duration> {
        match retry_after {
            Some(asked) => (asked <= self.policy.longest_retry_after).then_some(asked),
            None => {
                let doublings = self.n_failed.saturating_sub(1).min(31);
                let delay = self.policy.first_delay.saturating_mul(1 << doublings);
                let delay = delay.min(self.policy.longest_delay);
                Some(delay.mul_f64(1.0 + JITTER * jitter.clamp(0.0, 1.0)))
            }
        }
    }
}

/// Reads `retry-after`: seconds, or a date.
pub(crate) fn read_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    match value.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            Some(date.duration_since(now).unwrap_or_default())
        }
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
