//! Token usage. The engine counts from its start; a run reports only its own part.

use std::collections::BTreeMap;

use ostler_proto::api::{self, ModelUsage};
use serde::{Deserialize, Serialize};

use super::Speaker;
use crate::event::TokenUsage;

/// Tokens of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Counts {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    pub thinking: u64,
}

impl Counts {
    fn of_model(usage: &ModelUsage) -> Self {
        Self {
            input: usage.input_tokens,
            cache_read: usage.cache_read_input_tokens,
            cache_write: usage.cache_creation_input_tokens,
            output: usage.output_tokens,
            thinking: usage.thinking_tokens.unwrap_or_default(),
        }
    }

    /// Replaces earlier counts of the same response by later ones; absent numbers stay unchanged.
    fn update(&mut self, usage: &api::Usage) {
        let set = |place: &mut u64, value: Option<u64>| *place = value.unwrap_or(*place);
        set(&mut self.input, usage.input_tokens);
        set(&mut self.cache_read, usage.cache_read_input_tokens);
        set(&mut self.cache_write, usage.cache_creation_input_tokens);
        set(&mut self.output, usage.output_tokens);
    }

    fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// `None` if a count is lower than before: the engine was restarted.
    fn minus(self, before: Self) -> Option<Self> {
        let fewer = self.output < before.output || self.all_input() < before.all_input();
        (!fewer).then(|| self.with(before, u64::saturating_sub))
    }

    fn with(self, other: Self, op: fn(u64, u64) -> u64) -> Self {
        Self {
            input: op(self.input, other.input),
            cache_read: op(self.cache_read, other.cache_read),
            cache_write: op(self.cache_write, other.cache_write),
            output: op(self.output, other.output),
            thinking: op(self.thinking, other.thinking),
        }
    }

    fn all_input(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    fn report(self, model: &str) -> TokenUsage {
        let input = self.all_input();
        TokenUsage {
            provider: Some("anthropic".to_owned()),
            model: Some(model.to_owned()),
            input_tokens: Some(input),
            output_tokens: Some(self.output),
            total_tokens: Some(input.saturating_add(self.output)),
            reasoning_tokens: (self.thinking > 0).then_some(self.thinking),
            cached_input_tokens: Some(self.cache_read),
            cache_write_input_tokens: Some(self.cache_write),
        }
    }
}

/// Usage from two sources: the engine's totals in a result, and the numbers in streamed responses. The second is used
/// only if a run ends without a result.
#[derive(Debug, Default)]
pub(super) struct Usage {
    reported: BTreeMap<String, Counts>,
    seen: BTreeMap<String, Counts>,
    /// The current response of each speaker.
    present: BTreeMap<Speaker, (String, Counts)>,
}

impl Usage {
    pub(super) fn after(reported: BTreeMap<String, Counts>) -> Self {
        Self { reported, ..Self::default() }
    }

    pub(super) fn begin(&mut self, speaker: &Speaker, model: &str, usage: Option<&api::Usage>) {
        self.settle(speaker);
        let mut counts = Counts::default();
        if let Some(usage) = usage {
            counts.update(usage);
        }
        self.present.insert(speaker.clone(), (model.to_owned(), counts));
    }

    pub(super) fn update(&mut self, speaker: &Speaker, usage: Option<&api::Usage>) {
        if let (Some((_, counts)), Some(usage)) = (self.present.get_mut(speaker), usage) {
            counts.update(usage);
        }
    }

    fn settle(&mut self, speaker: &Speaker) {
        if let Some((model, counts)) = self.present.remove(speaker) {
            let seen = self.seen.entry(model).or_default();
            *seen = seen.plus(counts);
        }
    }

    /// The usage of the run, from the engine's totals.
    pub(super) fn by_result(&mut self, sums: &BTreeMap<String, ModelUsage>) -> Vec<TokenUsage> {
        let mut report = Vec::new();
        for (model, usage) in sums {
            let now = Counts::of_model(usage);
            let before = self.reported.insert(model.clone(), now).unwrap_or_default();
            let used = now.minus(before).unwrap_or(now);
            if used != Counts::default() {
                report.push(used.report(model));
            }
        }
        report
    }

    /// The usage of the run, from streamed responses.
    pub(super) fn by_responses(&mut self) -> Vec<TokenUsage> {
        for speaker in self.present.keys().cloned().collect::<Vec<_>>() {
            self.settle(&speaker);
        }
        let mut report = Vec::new();
        for (model, used) in std::mem::take(&mut self.seen) {
            let before = self.reported.entry(model.clone()).or_default();
            *before = before.plus(used);
            if used != Counts::default() {
                report.push(used.report(&model));
            }
        }
        report
    }

    pub(super) fn reset(&mut self) {
        self.reported.clear();
    }

    /// The usage reported so far, for the next run.
    pub(super) fn reported(&self) -> &BTreeMap<String, Counts> {
        &self.reported
    }
}
