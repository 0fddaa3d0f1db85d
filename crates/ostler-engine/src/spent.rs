//! What a session has used and cost so far, subagents included. Shared by all that ask the model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ostler_proto::api::{ModelUsage, Usage};

use crate::model::pricing;

/// Tokens and dollars per model, and the time that was spent waiting for models.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent(Arc<Mutex<Sums>>);

#[derive(Debug, Default)]
struct Sums {
    models: BTreeMap<String, ModelUsage>,
    model_time: Duration,
}

impl Spent {
    /// Counts one response.
    pub(crate) fn add(&self, model: &str, usage: &Usage) {
        let mut sums = self.sums();
        pricing::add(sums.models.entry(model.to_owned()).or_default(), model, usage);
    }

    /// Counts the time of one request, answered or not.
    pub(crate) fn waited(&self, time: Duration) {
        self.sums().model_time += time;
    }

    /// How long models were waited for so far; requests side by side count each for itself.
    pub(crate) fn model_time(&self) -> Duration {
        self.sums().model_time
    }

    /// Everything so far.
    pub(crate) fn models(&self) -> BTreeMap<String, ModelUsage> {
        self.sums().models.clone()
    }

    /// Dollars so far. Models without a known price count as free.
    pub(crate) fn dollars(&self) -> f64 {
        self.models().values().map(|usage| usage.cost_usd.get()).sum()
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
