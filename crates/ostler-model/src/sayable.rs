//! Removes blocks that cannot be sent back. The API refuses some blocks that it may itself have sent, or that are left
//! of a cut response; one of them in the conversation would make every later request fail.

use std::collections::HashSet;

use ostler_proto::api::{Content, ContentBlock, ToolResultBlock};
use ostler_proto::{ToolUseId, UnknownObject};
use serde_json::Value;

/// Whether the API accepts a block in a later request: no blank text, and only signed thinking blocks.
pub fn is_sayable(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(text) => !text.text.trim().is_empty(),
        ContentBlock::Thinking(thought) => !thought.signature.as_deref().unwrap_or("").is_empty(),
        _ => true,
    }
}

pub fn is_thought(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_))
}

/// Replaces a result that the API refused.
pub const REFUSED_RESULT: &str =
    "The result is left out: the API refused the request that it was part of.";

/// Empties a result that the API refused.
pub fn refuse(result: &mut ToolResultBlock) {
    result.content = Some(Content::from(REFUSED_RESULT));
    result.is_error = Some(true);
}

/// Removes blocks that must not be at the end of a finished response: thinking blocks, and calls of the API's own tools
/// without a result.
pub fn tidy_end(blocks: &mut Vec<ContentBlock>) {
    drop_half_server_calls(blocks);
    while blocks.last().is_some_and(is_thought) {
        blocks.pop();
    }
}

/// Removes calls of the API's own tools without their results, and the reverse: the API refuses one without the other.
fn drop_half_server_calls(blocks: &mut Vec<ContentBlock>) {
    let mut called = HashSet::new();
    let mut answered = HashSet::new();
    for block in blocks.iter() {
        match block {
            ContentBlock::ServerToolUse(call) => _ = called.insert(call.id.clone()),
            block => {
                // An answer counts only after its call.
                answered.extend(server_answer(block).filter(|id| called.contains(id)));
            }
        }
    }
    let mut open = HashSet::new();
    blocks.retain(|block| match block {
        ContentBlock::ServerToolUse(call) => {
            answered.remove(&call.id) && open.insert(call.id.clone())
        }
        block => server_answer(block).is_none_or(|id| open.remove(&id)),
    });
}

fn server_answer(block: &ContentBlock) -> Option<ToolUseId> {
    match block {
        ContentBlock::WebSearchToolResult(result) | ContentBlock::WebFetchToolResult(result) => {
            Some(result.tool_use_id.clone())
        }
        ContentBlock::Unknown(block) => unknown_answer(block),
        _ => None,
    }
}

fn unknown_answer(block: &UnknownObject) -> Option<ToolUseId> {
    block.get("tool_use_id").and_then(Value::as_str).map(ToolUseId::from)
}
