//! Turns the lines of a conversation into messages that the API accepts.
//!
//! Whatever the lines are, the result is valid: it begins with the user, roles alternate, every call has exactly one
//! result in the message after it, and nothing that the API would refuse is left. For a file that the engine wrote
//! itself, the result also equals the conversation that the engine had in memory, so that the vendor's cache still
//! hits.

use ostler_proto::ToolUseId;
use ostler_proto::api::{
    Content, ContentBlock, INVALID_INPUT, Role, SYNTHETIC_MODEL, ToolResultBlock, ToolUseBlock,
};
use ostler_proto::build;
use ostler_proto::transcript::TranscriptLine;
use serde_json::json;

use super::line::answers;
use ostler_model::ChatMessage;
use ostler_model::{INTERRUPTED_CALL, sayable};

/// Replaces the beginning of a conversation of which only the model's part is left.
pub const LOST_BEGINNING: &str = "[The beginning of this conversation is lost.]";

/// Turns lines, in the order of the conversation, into messages.
pub(super) fn conversation<'a>(
    lines: impl Iterator<Item = &'a TranscriptLine>,
) -> Vec<ChatMessage> {
    let mut rounds = vec![Round::default()];
    for line in accepted(lines) {
        match line {
            TranscriptLine::Assistant(entry) if entry.place.is_api_error_message == Some(true) => {
                let newest = rounds.last_mut().into_iter();
                newest.flat_map(|round| &mut round.results).for_each(sayable::refuse);
            }
            TranscriptLine::Assistant(entry) => {
                let id = entry.message.id.as_deref();
                match rounds.last_mut() {
                    Some(round) if round.goes_on(id) => round.say(&entry.message.content),
                    _ => {
                        let mut round = Round { id, ..Round::default() };
                        round.say(&entry.message.content);
                        rounds.push(round);
                    }
                }
            }
            TranscriptLine::User(entry) => match &entry.message.content {
                Some(Content::Text(text)) => hear(&mut rounds, &[ContentBlock::text(text)]),
                Some(Content::Blocks(blocks)) => hear(&mut rounds, blocks),
                None => {}
            },
            _ => {}
        }
    }
    let mut messages = Vec::new();
    for round in rounds {
        round.write(&mut messages);
    }
    messages
}

/// Leaves out the engine's own texts about API errors, and prompts that the API refused: it would refuse them again.
fn accepted<'a>(
    lines: impl Iterator<Item = &'a TranscriptLine>,
) -> impl Iterator<Item = &'a TranscriptLine> {
    let mut kept: Vec<&TranscriptLine> = Vec::new();
    for line in lines {
        let TranscriptLine::Assistant(entry) = line else {
            kept.push(line);
            continue;
        };
        let failed = entry.place.is_api_error_message == Some(true);
        if failed && matches!(entry.place.api_error_status, Some(400 | 413)) {
            let spoken = kept.iter().rposition(|line| {
                matches!(line, TranscriptLine::User(_) | TranscriptLine::Assistant(_))
            });
            let prompt = spoken.filter(|at| {
                // A summary replaces a conversation that the API once accepted.
                matches!(kept[*at], TranscriptLine::User(line) if line.place.is_compact_summary != Some(true))
                    && answers(kept[*at]).next().is_none()
            });
            match prompt {
                Some(prompt) => kept.truncate(prompt),
                // It shows that the results before it were refused.
                None => kept.push(line),
            }
        } else if !failed && entry.message.model != SYNTHETIC_MODEL {
            kept.push(line);
        }
    }
    kept.into_iter()
}

/// Adds blocks of a user message: results go to their calls, the rest after the last response.
fn hear(rounds: &mut [Round<'_>], blocks: &[ContentBlock]) {
    for block in blocks {
        match block {
            ContentBlock::ToolResult(result) => {
                let id = &result.tool_use_id;
                if let Some(round) = rounds.iter_mut().rev().find(|round| round.waits_for(id)) {
                    round.results.push(result.clone());
                }
            }
            block if !sayable::is_sayable(block) => {}
            ContentBlock::Text(_)
            | ContentBlock::Image(_)
            | ContentBlock::Document(_)
            | ContentBlock::Unknown(_) => {
                if let Some(round) = rounds.last_mut() {
                    round.heard.push(block.clone());
                }
            }
            // Only the model can send these.
            _ => {}
        }
    }
}

/// A response of the model and the user content after it.
#[derive(Default)]
struct Round<'a> {
    id: Option<&'a str>,
    said: Vec<ContentBlock>,
    results: Vec<ToolResultBlock>,
    heard: Vec<ContentBlock>,
}

impl Round<'_> {
    /// Whether a line is one more block of this response. Results may come while it is still being written.
    fn goes_on(&self, id: Option<&str>) -> bool {
        id.is_some() && self.id == id && self.heard.is_empty()
    }

    fn say(&mut self, blocks: &[ContentBlock]) {
        for block in blocks {
            match block {
                block if !sayable::is_sayable(block) => {}
                ContentBlock::ToolUse(call) => self.call(call),
                ContentBlock::ToolResult(_)
                | ContentBlock::Image(_)
                | ContentBlock::Document(_) => {}
                block => self.said.push(block.clone()),
            }
        }
    }

    fn call(&mut self, call: &ToolUseBlock) {
        let nameless = call.id.as_str().is_empty() || call.name.is_empty();
        if nameless || self.calls().any(|id| *id == call.id) {
            return;
        }
        let mut call = call.clone();
        if !call.input.is_object() {
            call.input = json!({INVALID_INPUT: call.input.to_string()});
        }
        self.said.push(ContentBlock::ToolUse(call));
    }

    fn calls(&self) -> impl Iterator<Item = &ToolUseId> {
        self.said.iter().filter_map(|block| Some(&block.as_tool_use()?.id))
    }

    fn waits_for(&self, id: &ToolUseId) -> bool {
        self.calls().any(|call| call == id)
            && self.results.iter().all(|result| result.tool_use_id != *id)
    }

    fn write(mut self, messages: &mut Vec<ChatMessage>) {
        sayable::tidy_end(&mut self.said);
        let ids: Vec<ToolUseId> = self.calls().cloned().collect();
        let results = ids.into_iter().map(|id| {
            let at = self.results.iter().position(|result| result.tool_use_id == id);
            let result = at.map(|at| self.results.swap_remove(at));
            ContentBlock::ToolResult(result.unwrap_or_else(|| interrupted(id)))
        });
        let heard: Vec<ContentBlock> = results.collect();
        push(messages, Role::Assistant, self.said);
        push(messages, Role::User, heard);
        push(messages, Role::User, self.heard);
    }
}

fn push(messages: &mut Vec<ChatMessage>, role: Role, content: Vec<ContentBlock>) {
    match messages.last_mut() {
        _ if content.is_empty() => {}
        Some(last) if last.role == role => last.content.extend(content),
        None if role == Role::Assistant => {
            push(messages, Role::User, vec![ContentBlock::text(LOST_BEGINNING)]);
            push(messages, role, content);
        }
        _ => messages.push(ChatMessage { role, content }),
    }
}

/// The same result as a turn gives to a stopped call.
fn interrupted(id: ToolUseId) -> ToolResultBlock {
    build!(ToolResultBlock {
        tool_use_id: id,
        content: Some(Content::from(INTERRUPTED_CALL)),
        is_error: Some(true)
    })
}
