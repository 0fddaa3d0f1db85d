//! What a session has used and cost so far, subagents included. Shared by all that ask the model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ostler_proto::api::{ModelUsage, Usage};

use crate::model::pricing;

/// Tokens and dollars per model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent(Arc<Mutex<BTreeMap<String, ModelUsage>>>);

impl Spent {
    /// Counts one response.
    pub(crate) fn add(&self, model: &str, usage: &Usage) {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pricing::add(models.entry(model.to_owned()).or_default(), model, usage);
    }

    /// Everything so far.
    pub(crate) fn models(&self) -> BTreeMap<String, ModelUsage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Dollars so far. Models without a known price count as free.
    pub(crate) fn dollars(&self) -> f64 {
        self.models().values().map(|usage| usage.cost_usd.get()).sum()
    }
}
