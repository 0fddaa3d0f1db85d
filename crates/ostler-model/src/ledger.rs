//! The usage and cost of a session so far, subagents included. Shared by everything that asks the model.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ostler_proto::Num;
use ostler_proto::api::{ModelUsage, Usage};
use serde_json::{Value, json};

use super::{Prices, pricing};

/// Tokens, dollars and time.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// What models cost.
    prices: Prices,
    /// Tokens and dollars per model.
    models: Arc<Mutex<BTreeMap<String, ModelUsage>>>,
    /// Time that models took to answer, in microseconds.
    waited: Arc<AtomicU64>,
    /// Permission questions that the user was asked.
    asked: Arc<AtomicU64>,
    /// Permission questions that a mode, a rule or a hook made unnecessary.
    spared: Arc<AtomicU64>,
    /// Lines that tools added to files, and that they removed.
    lines: Arc<(AtomicU64, AtomicU64)>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new(prices: Prices) -> Self {
        Self { prices, ..Self::default() }
    }

    /// What models cost.
    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    /// Counts one response.
    pub fn add(&self, model: &str, usage: &Usage) {
        let mut models = self.models.lock();
        add(models.entry(model.to_owned()).or_default(), model, usage, &self.prices);
    }

    /// Counts the time that a model took, whether it answered or not.
    pub fn add_time(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited.fetch_add(time, Ordering::Relaxed);
    }

    /// The time that models took so far. Parallel requests count separately.
    pub fn time(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }

    /// Counts a permission question.
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a permission question that a mode, a rule or a hook made unnecessary.
    pub fn spare(&self) {
        self.spared.fetch_add(1, Ordering::Relaxed);
    }

    /// How many permission questions were asked so far, and how many were made unnecessary.
    pub fn questions(&self) -> (u64, u64) {
        (self.asked.load(Ordering::Relaxed), self.spared.load(Ordering::Relaxed))
    }

    /// Counts the changed lines in a tool's structured output.
    pub fn add_lines(&self, output: &Value) {
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
    pub fn lines(&self) -> (u64, u64) {
        (self.lines.0.load(Ordering::Relaxed), self.lines.1.load(Ordering::Relaxed))
    }

    /// Everything so far.
    pub fn models(&self) -> BTreeMap<String, ModelUsage> {
        self.models.lock().clone()
    }

    /// A model that answered and whose price is unknown, if there is one.
    pub fn unpriced(&self) -> Option<String> {
        let is_unknown = |usage: &ModelUsage| usage.cost_basis.as_deref() == Some("unknown");
        let mut models = self.models().into_iter();
        models
            .find(|(name, usage)| is_unknown(usage) && name != pricing::OFFLINE)
            .map(|(name, _)| name)
    }

    /// Dollars so far. Models without a known price count as free; a limit in dollars does not let them answer again.
    pub fn dollars(&self) -> f64 {
        self.models().values().map(|usage| usage.cost_usd.get()).sum()
    }
}

/// Adds the tokens of one response, in and out. They are the API's numbers and must not overflow.
pub fn count_tokens(total: &AtomicU64, usage: &Usage) {
    let tokens = usage.total_input().saturating_add(usage.output_tokens.unwrap_or(0));
    let more = |sum: u64| Some(sum.saturating_add(tokens));
    let _ = total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
}

/// Adds the usage of one response to that of a turn. Fields that are not numbers are those of the last response.
pub fn add_usage(total: &mut Usage, one: &Usage) {
    // The numbers come from a server that may be hostile: they must not overflow.
    let sum = |left: Option<u64>, right: Option<u64>| {
        Some(left.unwrap_or(0).saturating_add(right.unwrap_or(0)))
    };
    total.input_tokens = sum(total.input_tokens, one.input_tokens);
    total.output_tokens = sum(total.output_tokens, one.output_tokens);
    total.cache_read_input_tokens = sum(total.cache_read_input_tokens, one.cache_read_input_tokens);
    total.cache_creation_input_tokens =
        sum(total.cache_creation_input_tokens, one.cache_creation_input_tokens);
    if let Some(used) = &one.server_tool_use {
        let total = total.server_tool_use.get_or_insert_default();
        total.web_search_requests = sum(total.web_search_requests, used.web_search_requests);
        total.web_fetch_requests = sum(total.web_fetch_requests, used.web_fetch_requests);
    }
    if let Some(written) = &one.cache_creation {
        let total = total.cache_creation.get_or_insert_default();
        total.one_hour = sum(total.one_hour, written.one_hour);
        total.five_minutes = sum(total.five_minutes, written.five_minutes);
    }
    let thought = thinking_tokens(total).saturating_add(thinking_tokens(one));
    total.output_tokens_details = Some(json!({"thinking_tokens": thought}));
    total.service_tier = one.service_tier.clone().or(total.service_tier.take());
    total.inference_geo = one.inference_geo.clone().or(total.inference_geo.take());
    total.speed = one.speed.clone().or(total.speed.take());
}

/// Adds one response to a model's usage. An unknown price counts as 0, and `costBasis` says so.
pub(crate) fn add(total: &mut ModelUsage, model: &str, usage: &Usage, prices: &Prices) {
    let searches = usage.server_tool_use.as_ref().and_then(|used| used.web_search_requests);
    add_to(&mut total.input_tokens, usage.input_tokens.unwrap_or(0));
    add_to(&mut total.output_tokens, usage.output_tokens.unwrap_or(0));
    add_to(&mut total.cache_read_input_tokens, usage.cache_read_input_tokens.unwrap_or(0));
    add_to(&mut total.cache_creation_input_tokens, usage.cache_creation_input_tokens.unwrap_or(0));
    add_to(&mut total.web_search_requests, searches.unwrap_or(0));
    let written = usage.cache_creation.clone().unwrap_or_default();
    for (total, one) in [
        (&mut total.thinking_tokens, thinking_tokens(usage)),
        (&mut total.cache_creation_five_minutes, written.five_minutes.unwrap_or(0)),
        (&mut total.cache_creation_one_hour, written.one_hour.unwrap_or(0)),
    ] {
        *total = Some(total.unwrap_or(0).saturating_add(one));
    }
    let (cost, basis) = prices.cost(model, usage).unwrap_or((0.0, pricing::UNKNOWN));
    total.cost_usd = Num::from(total.cost_usd.get() + cost);
    let stays_unknown = total.cost_basis.as_deref() == Some(pricing::UNKNOWN);
    total.cost_basis = Some(if stays_unknown { pricing::UNKNOWN } else { basis }.to_owned());
    total.context_window = pricing::context_window(model);
    total.max_output_tokens = pricing::family(model).map(|family| family.max_output);
}

fn add_to(total: &mut u64, one: u64) {
    *total = total.saturating_add(one);
}

/// Tokens that were spent on thinking, if the API reports them.
pub fn thinking_tokens(usage: &Usage) -> u64 {
    let details = usage.output_tokens_details.as_ref();
    details.and_then(|details| details["thinking_tokens"].as_u64()).unwrap_or(0)
}

/// Usage with every field, as the SDK's declarations require it: missing counts are zero, other missing fields have
/// their defaults.
pub fn whole_usage(mut usage: Usage) -> Usage {
    let whole = |count: Option<u64>| Some(count.unwrap_or(0));
    usage.input_tokens = whole(usage.input_tokens);
    usage.output_tokens = whole(usage.output_tokens);
    usage.cache_creation_input_tokens = whole(usage.cache_creation_input_tokens);
    usage.cache_read_input_tokens = whole(usage.cache_read_input_tokens);
    usage.output_tokens_details = Some(json!({"thinking_tokens": thinking_tokens(&usage)}));
    let tools = usage.server_tool_use.get_or_insert_default();
    tools.web_search_requests = whole(tools.web_search_requests);
    tools.web_fetch_requests = whole(tools.web_fetch_requests);
    let cache = usage.cache_creation.get_or_insert_default();
    cache.one_hour = whole(cache.one_hour);
    cache.five_minutes = whole(cache.five_minutes);
    usage.service_tier.get_or_insert_with(|| "standard".to_owned());
    usage.inference_geo.get_or_insert_default();
    usage.iterations.get_or_insert_with(|| json!([]));
    usage.speed.get_or_insert_with(|| "standard".to_owned());
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_responses_adds_up_and_has_every_field() {
        let one: Usage = serde_json::from_value(json!({
            "input_tokens": 3, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2},
            "server_tool_use": {"web_search_requests": 1}, "service_tier": "priority",
            "cache_creation": {"ephemeral_5m_input_tokens": 7},
        }))
        .unwrap();
        let mut total = Usage::default();
        add_usage(&mut total, &one);
        add_usage(&mut total, &one);
        add_usage(&mut total, &Usage::default());
        let whole = serde_json::to_value(whole_usage(total)).unwrap();
        let expected = json!({
            "input_tokens": 6, "output_tokens": 10, "output_tokens_details": {"thinking_tokens": 4},
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 14},
            "service_tier": "priority", "inference_geo": "", "iterations": [], "speed": "standard",
        });
        assert_eq!(whole, expected);
    }

    // Mutant: the counts are added with `+`, which panics in a debug build and starts again at 0 in any other.
    #[test]
    fn counts_saturate_at_the_largest_number() {
        let most = u64::MAX;
        let one: Usage = serde_json::from_value(json!({
            "input_tokens": most, "output_tokens": most, "cache_read_input_tokens": most,
            "cache_creation_input_tokens": most, "output_tokens_details": {"thinking_tokens": most},
            "server_tool_use": {"web_search_requests": most, "web_fetch_requests": most},
            "cache_creation": {"ephemeral_5m_input_tokens": most, "ephemeral_1h_input_tokens": most},
        }))
        .unwrap();
        let (mut total, spent) = (Usage::default(), Ledger::default());
        for _ in 0..3 {
            add_usage(&mut total, &one);
            spent.add("claude-sonnet-4-5", &one);
        }
        assert_eq!((total.input_tokens, total.output_tokens), (Some(most), Some(most)));
        let models = spent.models();
        let usage = &models["claude-sonnet-4-5"];
        assert_eq!((usage.input_tokens, usage.web_search_requests), (most, most));
        assert!(spent.dollars().is_finite() && spent.dollars() > 0.0);
    }
}
