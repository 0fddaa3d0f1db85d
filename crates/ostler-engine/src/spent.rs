//! What a session has used and cost so far, subagents included. Shared by all that ask the model.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ostler_proto::api::{ModelUsage, Usage};

use crate::model::pricing;

/// Tokens, dollars and time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    /// Tokens and dollars per model.
    models: Arc<Mutex<BTreeMap<String, ModelUsage>>>,
    /// Time that models took to answer, in microseconds.
    waited: Arc<AtomicU64>,
    /// Permission questions that were asked.
    asked: Arc<AtomicU64>,
    /// Those that would have been asked in the default mode without any rule or hook.
    spared: Arc<AtomicU64>,
}

impl Spent {
    /// Counts one response.
    pub(crate) fn add(&self, model: &str, usage: &Usage) {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        pricing::add(models.entry(model.to_owned()).or_default(), model, usage);
    }

    /// Counts the time that a model took, whether it answered or not.
    pub(crate) fn add_time(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited.fetch_add(time, Ordering::Relaxed);
    }

    /// The time that models took so far. What they took side by side counts for each of them.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }

    /// Counts a permission question.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a permission question that a mode, a rule or a hook made unnecessary.
    pub(crate) fn spare(&self) {
        self.spared.fetch_add(1, Ordering::Relaxed);
    }

    /// How many permission questions were asked so far, and how many were made unnecessary.
    pub(crate) fn questions(&self) -> (u64, u64) {
        (self.asked.load(Ordering::Relaxed), self.spared.load(Ordering::Relaxed))
    }

    /// Everything so far.
    pub(crate) fn models(&self) -> BTreeMap<String, ModelUsage> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Dollars so far. Models without a known price count as free.
    pub(crate) fn dollars(&self) -> f64 {
        self.models().values().map(|usage| usage.cost_usd.get()).sum()
    }
}
