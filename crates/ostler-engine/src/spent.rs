//! What a session has used and cost so far, subagents included. Shared by all that ask the model.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ostler_proto::api::{ModelUsage, Usage};
use serde_json::Value;

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
    /// Lines that tools added to files, and that they removed.
    lines: Arc<(AtomicU64, AtomicU64)>,
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

    /// Counts the lines that a tool changed, as its structured output tells them.
    pub(crate) fn add_lines(&self, output: &Value) {
        let patch = output["structuredPatch"].as_array().map(Vec::as_slice).unwrap_or_default();
        let lines = patch.iter().filter_map(|hunk| hunk["lines"].as_array()).flatten();
        let mut lines: (u64, u64) =
            lines.filter_map(Value::as_str).fold((0, 0), |(added, removed), line| {
                (
                    added + u64::from(line.starts_with('+')),
                    removed + u64::from(line.starts_with('-')),
                )
            });
        if output["type"] == "create" {
            lines.0 += output["content"].as_str().map_or(0, |text| text.lines().count() as u64);
        }
        self.lines.0.fetch_add(lines.0, Ordering::Relaxed);
        self.lines.1.fetch_add(lines.1, Ordering::Relaxed);
    }

    /// Lines added and removed so far.
    pub(crate) fn lines(&self) -> (u64, u64) {
        (self.lines.0.load(Ordering::Relaxed), self.lines.1.load(Ordering::Relaxed))
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
