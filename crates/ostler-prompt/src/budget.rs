//! [`Budget`] and [`BudgetTracker`]: how much may be spent, and how much was, by any number of runs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much may be spent. What is not set has no limit.
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
    /// Tokens in and out together. Cached input counts in full: it fills the window all the same.
    pub max_total_tokens: Option<u64>,
    /// Tokens in.
    pub max_input_tokens: Option<u64>,
    /// Tokens out.
    pub max_output_tokens: Option<u64>,
    /// Dollars.
    pub max_usd: Option<f64>,
}

impl Budget {
    /// Without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many tokens, in and out together.
    pub fn tokens(total: u64) -> Self {
        Self { max_total_tokens: Some(total), ..Self::default() }
    }

    /// So many dollars.
    pub fn usd(dollars: f64) -> Self {
        Self::default().max_usd(dollars)
    }

    /// So many tokens in.
    #[must_use]
    pub fn max_input_tokens(mut self, tokens: u64) -> Self {
        self.max_input_tokens = Some(tokens);
        self
    }

    /// So many tokens out.
    #[must_use]
    pub fn max_output_tokens(mut self, tokens: u64) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// So many dollars.
    #[must_use]
    pub fn max_usd(mut self, dollars: f64) -> Self {
        self.max_usd = Some(dollars);
        self
    }
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of all requests, cached ones included.
    pub input_tokens: u64,
    /// Of all responses.
    pub output_tokens: u64,
    /// Of the input, those read from the cache.
    pub cached_tokens: u64,
}

impl Usage {
    /// In and out together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub(crate) fn add(&mut self, more: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(more.cached_tokens);
    }

    /// What is here and not there.
    pub(crate) fn beyond(&self, other: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
        }
    }
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Spent {
    /// Tokens.
    pub usage: Usage,
    /// Dollars.
    pub usd: f64,
}

/// Which limit was reached. Its text is what the model and the caller read.
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

/// A budget and what was spent of it. Clones are the same tracker: give one to several runs, side by side or one after
/// another, and they share the budget.
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
    /// Nothing spent yet.
    pub fn new(budget: Budget) -> Self {
        Self { budget, spent: Arc::default() }
    }

    /// The limits.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What was spent by all runs so far.
    pub fn spent(&self) -> Spent {
        *self.lock()
    }

    /// Tokens spent by all runs so far.
    pub fn consumed(&self) -> u64 {
        self.spent().usage.total()
    }

    /// Adds tokens.
    pub fn record(&self, usage: Usage) {
        self.lock().usage.add(&usage);
    }

    /// Adds dollars. What is no amount is not added.
    pub fn record_usd(&self, dollars: f64) {
        if dollars.is_finite() && dollars > 0.0 {
            self.lock().usd += dollars;
        }
    }

    /// The limit that was reached, if one was. Spending exactly the limit reaches it.
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
        // A limit that is no number is no permission.
        let usd = max_usd.is_some_and(|limit| limit.is_nan() || spent.usd >= limit);
        usd.then_some(Exhausted::Usd)
    }

    /// Dollars that are left; `None` without a limit.
    pub fn remaining_usd(&self) -> Option<f64> {
        self.budget.max_usd.map(|limit| (limit - self.spent().usd).max(0.0))
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn dollars_have_a_limit_of_their_own() {
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
    fn nothing_is_lost_when_many_spend_at_once() {
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
