//! How full the context window is, and when that is too full. Pure, except that the last measurement is shared.
//!
//! The API's count for the last response is exact; only messages after it are estimated. An estimate that is too low
//! costs a refused request, after which the conversation is compacted anyway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ostler_proto::api::{ContentBlock, Role, Usage};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::drive::{MAX_OUTPUT_TOKENS, TurnContext};
use crate::model::{ChatMessage, pricing};

/// The window of an unknown model: the smallest of today's models.
const UNKNOWN_WINDOW: u64 = 200_000;

/// How much of the window may be full, in percent.
const FULL_PERCENT: u64 = 85;

/// The approximate tokens of an image, whose size in bytes says nothing about them.
const IMAGE_TOKENS: u64 = 1_600;

/// When a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Whether it happens by itself when the context window is nearly full. `/compact` works in any case.
    pub automatic: bool,
    /// A smaller window than the model's, or the window of an unknown model, in tokens.
    pub window: Option<u64>,
    /// Whether requests ask for the large window (the beta `context-1m-…`), where a model has one.
    pub large: bool,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { automatic: true, window: None, large: false }
    }
}

impl Compaction {
    /// Reads `autoCompactEnabled` and `autoCompactWindow`. Invalid values are ignored.
    pub fn from_settings(settings: &Map<String, Value>) -> Self {
        let automatic = settings.get("autoCompactEnabled").and_then(Value::as_bool).unwrap_or(true);
        let window = settings.get("autoCompactWindow").and_then(Value::as_u64);
        Self { automatic, window: window.filter(|window| *window > 0), large: false }
    }

    /// The same for requests with these betas.
    #[must_use]
    pub fn with_betas(self, betas: &[String]) -> Self {
        Self { large: betas.iter().any(|beta| beta.starts_with("context-1m-")), ..self }
    }

    /// The number of tokens at which a model's context counts as full. There is still room for the next answer.
    pub fn threshold(&self, model: &str) -> u64 {
        let known = match self.large && pricing::has_large_window(model) {
            true => Some(pricing::LARGE_WINDOW),
            false => pricing::context_window(model),
        };
        let window = match (self.window, known) {
            (Some(wanted), Some(known)) => wanted.min(known),
            (Some(window), None) | (None, Some(window)) => window,
            (None, None) => UNKNOWN_WINDOW,
        };
        let answer = MAX_OUTPUT_TOKENS.min(window / 4);
        (window - answer).min(window.saturating_mul(FULL_PERCENT) / 100)
    }
}

/// How many tokens the API counted last for a conversation: all that went in, and the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextUsage {
    tokens: Arc<AtomicU64>,
    /// When it was counted.
    at: Arc<Mutex<Option<Instant>>>,
}

impl ContextUsage {
    /// Notes what the API counted.
    pub(crate) fn measure(&self, usage: &Usage) {
        let tokens = usage.total_input().saturating_add(usage.output_tokens.unwrap_or(0));
        self.tokens.store(tokens, Ordering::Relaxed);
        *self.at.lock() = Some(Instant::now());
    }

    /// What was counted last; 0 before the first response.
    pub(crate) fn last(&self) -> u64 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Whether the last count is at most this old.
    pub(crate) fn is_fresh(&self, age: Duration) -> bool {
        let at = *self.at.lock();
        at.is_some_and(|at| at.elapsed() < age)
    }

    /// Forgets the count, because the conversation was replaced.
    pub(super) fn forget(&self) {
        self.tokens.store(0, Ordering::Relaxed);
    }

    /// The tokens of a conversation, as exactly as they are known.
    pub(crate) fn tokens(&self, context: &TurnContext, conversation: &[ChatMessage]) -> u64 {
        match self.last() {
            0 => beginning(context).saturating_add(estimate(conversation)),
            measured => measured.saturating_add(estimate(since_last_answer(conversation))),
        }
    }
}

/// The messages after the last response.
fn since_last_answer(conversation: &[ChatMessage]) -> &[ChatMessage] {
    let answer = conversation.iter().rposition(|said| said.role == Role::Assistant);
    &conversation[answer.map_or(0, |answer| answer + 1)..]
}

/// The estimated tokens of system prompt and tools.
fn beginning(context: &TurnContext) -> u64 {
    let tools = context
        .specs
        .iter()
        .map(|spec| spec.name.len() + spec.description.len() + spec.input_schema.to_string().len());
    (tools.sum::<usize>() + context.system.len()) as u64 / 4
}

fn estimate(conversation: &[ChatMessage]) -> u64 {
    let blocks = conversation.iter().flat_map(|said| &said.content);
    blocks.map(tokens).fold(0, u64::saturating_add)
}

fn tokens(block: &ContentBlock) -> u64 {
    match block {
        ContentBlock::Text(text) => text.text.len() as u64 / 4 + 1,
        block => serde_json::to_value(block).map_or(0, |block| weigh(&block)),
    }
}

/// Counts four bytes as a token, except in encoded data: images and pages have a fixed estimate.
fn weigh(value: &Value) -> u64 {
    match value {
        Value::Object(source) if source.get("type").is_some_and(|kind| kind == "base64") => {
            let kind = source.get("media_type").and_then(Value::as_str).unwrap_or_default();
            let data = source.get("data").and_then(Value::as_str).map_or(0, str::len) as u64;
            if kind.starts_with("image/") { IMAGE_TOKENS } else { data / 16 }
        }
        Value::Object(fields) => fields.values().map(weigh).fold(1, u64::saturating_add),
        Value::Array(items) => items.iter().map(weigh).fold(0, u64::saturating_add),
        Value::String(text) => text.len() as u64 / 4 + 1,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_context_is_full_while_there_is_still_room_for_an_answer() {
        let threshold =
            |model: &str, window| Compaction { window, ..Compaction::default() }.threshold(model);
        assert_eq!(threshold("claude-opus-5-5", None), 850_000);
        assert_eq!(threshold("claude-opus-4-5", None), 168_000);
        assert_eq!(threshold("other-vendor", None), 168_000);
        assert_eq!(threshold("other-vendor", Some(1_000_000)), 850_000);
        assert_eq!(threshold("claude-opus-5-5", Some(400_000)), 340_000);
        assert_eq!(
            threshold("claude-opus-4-5", Some(400_000)),
            168_000,
            "its window is not larger"
        );
        assert_eq!(threshold("other-vendor", Some(1000)), 750);
        assert_eq!(threshold("other-vendor", Some(1)), 0);
    }

    // Mutant: betas are ignored.
    #[test]
    fn the_beta_for_the_large_window_counts_where_a_model_has_one() {
        let betas = ["other-1".to_owned(), "context-1m-2025-08-07".to_owned()];
        let with =
            |model, betas: &[String]| Compaction::default().with_betas(betas).threshold(model);
        assert_eq!(with("claude-sonnet-4-5", &betas), 850_000);
        assert_eq!(with("claude-sonnet-4-5", &betas[..1]), 168_000);
        assert_eq!(with("claude-opus-4-5", &betas), 168_000);
    }

    #[test]
    fn settings_may_disable_compaction_or_make_the_window_smaller() {
        let read = |value: Value| Compaction::from_settings(value.as_object().unwrap());
        assert_eq!(read(json!({})), Compaction::default());
        assert!(!read(json!({"autoCompactEnabled": false})).automatic);
        assert_eq!(read(json!({"autoCompactWindow": 5000})).window, Some(5000));
        let odd = json!({"autoCompactEnabled": "no", "autoCompactWindow": 0});
        assert_eq!(read(odd), Compaction::default());
    }

    #[test]
    fn only_messages_after_the_last_answer_are_estimated() {
        let said =
            |role, text: String| ChatMessage { role, content: vec![ContentBlock::text(text)] };
        let conversation = [
            said(Role::User, "x".repeat(4000)),
            said(Role::Assistant, "y".repeat(4000)),
            said(Role::User, "z".repeat(400)),
        ];
        assert_eq!(estimate(since_last_answer(&conversation)), 101);
        assert_eq!(estimate(since_last_answer(&conversation[..2])), 0);
        assert_eq!(estimate(since_last_answer(&conversation[..1])), 1001);
        assert!(estimate(&conversation) > 2000);
    }

    #[test]
    fn pictures_do_not_count_by_their_bytes() {
        let image = |kind: &str| {
            json!({"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": kind, "data": "A".repeat(160_000)}}]})
        };
        assert!((1_600..1_700).contains(&weigh(&image("image/png"))));
        assert!((10_000..10_100).contains(&weigh(&image("application/pdf"))));
    }
}
