//! Turns a reply into the message for one request: fills in templates, assigns ids, counts tokens.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::block::{Block, ToolUse, split_text};
use crate::conversation::Conversation;
use crate::reply::Reply;

/// English text and JSON have roughly this many bytes per token.
const BYTES_PER_TOKEN: usize = 4;

/// A message ready to be sent, whole or as events.
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) blocks: Vec<ComposedBlock>,
    pub(crate) stop_reason: String,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) stop_details: Option<Value>,
    /// The complete counts; a stream starts with fewer output tokens.
    pub(crate) usage: Value,
}

impl Message {
    pub(crate) fn compose(reply: &Reply, body: &Value, ids: &Ids) -> Self {
        let request = Conversation::of(body);
        let template =
            Template { prompt: request.prompt(), tool_result: request.newest_tool_result() };
        let blocks: Vec<ComposedBlock> = reply
            .content
            .iter()
            .map(|block| ComposedBlock::compose(block, &template, ids))
            .collect();
        Self {
            id: ids.message(),
            model: reply.model.clone().unwrap_or_else(|| request.model().to_owned()),
            stop_reason: reply
                .stop_reason
                .clone()
                .unwrap_or_else(|| usual_stop_reason(reply).to_owned()),
            stop_sequence: reply.stop_sequence.clone(),
            stop_details: reply.stop_details.clone(),
            usage: usage(reply, body, &blocks),
            blocks,
        }
    }

    /// The message in the form that a call without a stream receives.
    pub(crate) fn whole(&self) -> Value {
        let content: Vec<&Value> = self.blocks.iter().map(|block| &block.whole).collect();
        let mut message = json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
            "stop_reason": self.stop_reason, "stop_sequence": self.stop_sequence, "usage": self.usage,
        });
        if let Some(details) = &self.stop_details {
            message["stop_details"] = details.clone();
        }
        message
    }
}

/// A content block, whole and as the events of a stream.
pub(crate) struct ComposedBlock {
    pub(crate) whole: Value,
    pub(crate) start: Value,
    pub(crate) deltas: Vec<Value>,
}

impl ComposedBlock {
    fn compose(block: &Block, template: &Template, ids: &Ids) -> Self {
        let fill = |text: &str| template.fill(text);
        match block {
            Block::Text { text, split } => {
                let pieces = text.pieces(*split, fill);
                Self {
                    whole: json!({"type": "text", "text": pieces.concat()}),
                    start: json!({"type": "text", "text": ""}),
                    deltas: pieces
                        .iter()
                        .map(|piece| json!({"type": "text_delta", "text": piece}))
                        .collect(),
                }
            }
            Block::Thinking { thinking, signature, split } => {
                let pieces = thinking.pieces(*split, fill);
                let thoughts =
                    pieces.iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
                let seal = json!({"type": "signature_delta", "signature": signature});
                Self {
                    whole: json!({"type": "thinking", "thinking": pieces.concat(), "signature": signature}),
                    start: json!({"type": "thinking", "thinking": "", "signature": ""}),
                    deltas: thoughts.chain([seal]).collect(),
                }
            }
            Block::RedactedThinking { data } => {
                Self::at_once(json!({"type": "redacted_thinking", "data": data}))
            }
            Block::Raw { block } => Self::at_once(block.clone()),
            Block::ToolUse(call) => Self::tool_use("tool_use", "toolu", call, template, ids),
            Block::ServerToolUse(call) => {
                Self::tool_use("server_tool_use", "srvtoolu", call, template, ids)
            }
        }
    }

    fn at_once(block: Value) -> Self {
        Self { start: block.clone(), whole: block, deltas: Vec::new() }
    }

    fn tool_use(kind: &str, prefix: &str, call: &ToolUse, template: &Template, ids: &Ids) -> Self {
        let id = call.id.clone().unwrap_or_else(|| ids.tool_use(prefix));
        let input = template.fill_json(&call.input);
        let streamed = match &call.raw_input {
            Some(text) => template.fill(text),
            None if input.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
            None => input.to_string(),
        };
        // The API starts every tool input with an empty delta.
        let pieces = [String::new()].into_iter().chain(split_text(&streamed, call.split));
        Self {
            start: json!({"type": kind, "id": id, "name": call.name, "input": {}}),
            whole: json!({"type": kind, "id": id, "name": call.name, "input": input}),
            deltas: pieces
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
        }
    }
}

/// Assigns ids that are unique in one server and the same in every run with the same order of requests.
#[derive(Default)]
pub(crate) struct Ids {
    messages: AtomicU64,
    tool_uses: AtomicU64,
}

impl Ids {
    fn message(&self) -> String {
        format!("msg_{:024}", self.messages.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn tool_use(&self, prefix: &str) -> String {
        format!("{prefix}_{:024}", self.tool_uses.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// An estimate of the tokens in a request: a quarter of the bytes of its system prompt, tools and messages as compact
/// JSON, rounded up. Good enough to compare requests, not to predict costs.
pub(crate) fn estimate_input_tokens(body: &Value) -> u64 {
    let parts = ["system", "tools", "messages"].into_iter().filter_map(|part| body.get(part));
    estimate_tokens(parts.map(|part| part.to_string().len()).sum())
}

fn estimate_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN).max(1) as u64
}

fn usual_stop_reason(reply: &Reply) -> &'static str {
    if reply.stop_sequence.is_some() {
        "stop_sequence"
    } else if reply.content.iter().any(|block| matches!(block, Block::ToolUse(_))) {
        "tool_use"
    } else {
        "end_turn"
    }
}

fn usage(reply: &Reply, body: &Value, blocks: &[ComposedBlock]) -> Value {
    let written =
        || estimate_tokens(blocks.iter().map(|block| block.whole.to_string().len()).sum());
    json!({
        "input_tokens": reply.usage.input_tokens.unwrap_or_else(|| estimate_input_tokens(body)),
        "cache_creation_input_tokens": reply.usage.cache_creation_input_tokens,
        "cache_read_input_tokens": reply.usage.cache_read_input_tokens,
        "output_tokens": reply.usage.output_tokens.unwrap_or_else(written),
    })
}

/// The values of the placeholders in a reply.
struct Template {
    prompt: String,
    tool_result: String,
}

impl Template {
    /// Replaces in one pass, so that a placeholder inside the prompt stays literal.
    fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            let (before, placeholder) = rest.split_at(open);
            filled.push_str(before);
            let (value, length) = if placeholder.starts_with("{{prompt}}") {
                (self.prompt.as_str(), "{{prompt}}".len())
            } else if placeholder.starts_with("{{tool_result}}") {
                (self.tool_result.as_str(), "{{tool_result}}".len())
            } else {
                ("{", 1)
            };
            filled.push_str(value);
            rest = &placeholder[length..];
        }
        filled + rest
    }

    fn fill_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_json(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields.iter().map(|(name, field)| (name.clone(), self.fill_json(field))).collect(),
            ),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Template {
        Template { prompt: "say {{tool_result}}".to_owned(), tool_result: "42".to_owned() }
    }

    #[test]
    fn placeholders_are_replaced_once_and_other_braces_stay() {
        assert_eq!(template().fill("{{prompt}} = {{tool_result}}"), "say {{tool_result}} = 42");
        assert_eq!(template().fill("{{{tool_result}}} {{other}} {x} {{"), "{42} {{other}} {x} {{");
    }

    #[test]
    fn placeholders_inside_an_input_are_replaced() {
        let filled = template()
            .fill_json(&json!({"a": ["{{tool_result}}", 1], "b": {"c": "x{{tool_result}}"}}));
        assert_eq!(filled, json!({"a": ["42", 1], "b": {"c": "x42"}}));
    }

    #[test]
    fn the_estimate_grows_with_system_tools_and_messages_only() {
        let small =
            estimate_input_tokens(&json!({"messages": ["0123456789"], "metadata": "ignored"}));
        assert_eq!(small, 4, "14 bytes of JSON, rounded up");
        assert!(
            estimate_input_tokens(&json!({"messages": ["0123456789"], "system": "0123456789"}))
                > small
        );
        assert_eq!(estimate_input_tokens(&json!({})), 1);
    }
}
