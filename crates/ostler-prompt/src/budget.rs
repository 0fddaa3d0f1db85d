//! [`Budget`] and [`BudgetTracker`]: limits on tokens and dollars, and the spending of runs.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::sync::Arc;

/// Limits on spending. A field that is `None` sets no limit.
///
/// ```
/// use ostler_prompt::Budget;
///
/// let budget = Budget::tokens(50_000).max_usd(0.5);
/// assert_eq!(budget.max_total_tokens, Some(50_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Budget {
    /// Input and output tokens together. Cached input counts in full, because it fills the context window as well.
    pub max_total_tokens: Option<u64>,
    /// Input tokens.
    pub max_input_tokens: Option<u64>,
    /// Output tokens.
    pub max_output_tokens: Option<u64>,
    /// Dollars.
    pub max_usd: Option<f64>,
}

impl Budget {
    /// No limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits input and output tokens together.
    pub fn tokens(total: u64) -> Self {
        Self { max_total_tokens: Some(total), ..Self::default() }
    }

    /// Limits dollars.
    pub fn usd(dollars: f64) -> Self {
        Self::default().max_usd(dollars)
    }

    /// Limits input tokens.
    #[must_use]
    pub fn max_input_tokens(mut self, tokens: u64) -> Self {
        self.max_input_tokens = Some(tokens);
        self
    }

    /// Limits output tokens.
    #[must_use]
    pub fn max_output_tokens(mut self, tokens: u64) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Limits dollars.
    #[must_use]
    pub fn max_usd(mut self, dollars: f64) -> Self {
        self.max_usd = Some(dollars);
        self
    }
}

/// Numbers of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input of all requests, including cached tokens.
    pub input_tokens: u64,
    /// Output of all responses.
    pub output_tokens: u64,
    /// The part of the input that was read from the cache.
    pub cached_tokens: u64,
}

impl Usage {
    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(more.cached_tokens);
    }

    /// The difference to `other`, at least zero.
    pub(crate) fn beyond(&self, other: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
        }
    }
}

/// Tokens and dollars that were spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Spent {
    /// Tokens.
    pub usage: Usage,
    /// Dollars.
    pub usd: f64,
}

/// The limit that was reached. The model and the caller read its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exhausted {
    /// One of the token limits.
    Tokens,
    /// The dollars.
    Usd,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tokens => "Token budget exhausted",
            Self::Usd => "USD budget exhausted",
        })
    }
}

/// A budget and how much of it was spent. Clones are the same tracker: several runs that get it, at the same time or
/// one after another, share the budget.
///
/// ```
/// use ostler_prompt::{Budget, BudgetTracker, Usage};
///
/// let tracker = BudgetTracker::new(Budget::tokens(100));
/// tracker.record(Usage { input_tokens: 90, output_tokens: 9, cached_tokens: 0 });
/// assert_eq!(tracker.exhausted(), None);
/// tracker.record(Usage { output_tokens: 1, ..Usage::default() });
/// assert_eq!(tracker.exhausted().unwrap().to_string(), "Token budget exhausted");
/// ```
#[derive(Clone, Debug)]
pub struct BudgetTracker {
    budget: Budget,
    spent: Arc<Mutex<Spent>>,
}

impl BudgetTracker {
    /// A tracker with nothing spent.
    pub fn new(budget: Budget) -> Self {
        Self { budget, spent: Arc::default() }
    }

    /// The limits.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The spending of all runs so far.
    pub fn spent(&self) -> Spent {
        *self.lock()
    }

    /// The tokens that all runs have spent so far.
    pub fn consumed(&self) -> u64 {
        self.spent().usage.total()
    }

    /// Adds tokens.
    pub fn record(&self, usage: Usage) {
        self.lock().usage.add(&usage);
    }

    /// Adds dollars. Negative and non-finite amounts are ignored.
    pub fn record_usd(&self, dollars: f64) {
        if dollars.is_finite() && dollars > 0.0 {
            self.lock().usd += dollars;
        }
    }

    /// The limit that was reached, if any. Spending exactly the limit reaches it.
    pub fn exhausted(&self) -> Option<Exhausted> {
        let spent = self.spent();
        let reached = |limit: Option<u64>, spent: u64| limit.is_some_and(|limit| spent >= limit);
        let Budget { max_total_tokens, max_input_tokens, max_output_tokens, max_usd } = self.budget;
        let usage = spent.usage;
        if reached(max_total_tokens, usage.total())
            || reached(max_input_tokens, usage.input_tokens)
            || reached(max_output_tokens, usage.output_tokens)
        {
            return Some(Exhausted::Tokens);
        }
        // A limit that is not a number counts as reached.
        let usd = max_usd.is_some_and(|limit| limit.is_nan() || spent.usd >= limit);
        usd.then_some(Exhausted::Usd)
    }

    /// Remaining dollars; `None` without a limit.
    pub fn remaining_usd(&self) -> Option<f64> {
        self.budget.max_usd.map(|limit| (limit - self.spent().usd).max(0.0))
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, cached_tokens: 0 }
    }

    fn check(budget: Budget, spent: Usage, expected: Option<Exhausted>) {
        let tracker = BudgetTracker::new(budget);
        tracker.record(spent);
        assert_eq!(tracker.exhausted(), expected, "{budget:?} {spent:?}");
    }

    #[test]
    fn spending_exactly_the_limit_reaches_it() {
        let tokens = Some(Exhausted::Tokens);
        check(Budget::tokens(100), usage(50, 49), None);
        check(Budget::tokens(100), usage(50, 50), tokens);
        check(Budget::tokens(100), usage(50, 51), tokens);
        check(Budget::tokens(0), usage(0, 0), tokens);
        check(Budget::new().max_input_tokens(10), usage(9, 99), None);
        check(Budget::new().max_input_tokens(10), usage(10, 0), tokens);
        check(Budget::new().max_output_tokens(10), usage(99, 9), None);
        check(Budget::new().max_output_tokens(10), usage(0, 10), tokens);
        check(Budget::new(), usage(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn dollars_have_a_separate_limit() {
        let tracker = BudgetTracker::new(Budget::usd(1.0));
        tracker.record_usd(0.75);
        tracker.record_usd(f64::NAN);
        tracker.record_usd(-3.0);
        assert_eq!((tracker.exhausted(), tracker.remaining_usd()), (None, Some(0.25)));
        tracker.record_usd(0.25);
        assert_eq!(tracker.exhausted().unwrap().to_string(), "USD budget exhausted");
        assert_eq!(tracker.remaining_usd(), Some(0.0));
        assert_eq!(BudgetTracker::new(Budget::usd(f64::NAN)).exhausted(), Some(Exhausted::Usd));
    }

    #[test]
    fn concurrent_spending_is_counted_completely() {
        let tracker = BudgetTracker::new(Budget::tokens(16 * 1000 * 3));
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        assert_eq!(tracker.exhausted(), None);
                        tracker.record(usage(1, 1));
                    }
                });
            }
        });
        assert_eq!(tracker.consumed(), 32_000);
        tracker.record(usage(16_000, 0));
        assert_eq!(tracker.exhausted(), Some(Exhausted::Tokens));
    }
}
