//! All oddities of peers, in one place.
//!
//! | quirk | here |
//! |---|---|
//! | old engines require `updatedInput` in an allow | [`complete_answer`] adds it, [`input_to_run`] works without it |
//! | `toolUseID` in an answer is whatever a callback returned | [`complete_answer`] overwrites it |
//! | `systemPrompt` is a string or a list of strings | [`system_prompt_text`] |
//! | new engines write `result` frames with `type` in the middle | any key order is read; nothing to call |
//! | `tool_progress` names a synthetic call | [`progress_call`] |
//! | `tool_progress` comes before the `content_block_stop` of its call | [`Calls`] accepts both orders |
//! | `tool_use_summary` comes without `preceding_tool_use_ids` | [`summarised_calls`], [`Calls`] |
//! | JavaScript cuts strings inside a character (`\ud83d` alone) | [`replace_lone_surrogates`], done by every decoder |

use serde_json::Value;

use crate::ToolUseId;
use crate::api::{Content, ContentBlock, StreamEvent};
use crate::control::{CanUseTool, SystemPrompt};
use crate::frame::ToHost;
use crate::message::{ToolProgress, ToolUseSummary};
use crate::permission::{Allow, PermissionResult};

/// Completes a callback's answer before it is sent: an allow always carries the input to run, and the call is the one
/// in question.
pub fn complete_answer(request: &CanUseTool, mut answer: PermissionResult) -> PermissionResult {
    match &mut answer {
        PermissionResult::Allow(allow) => {
            allow.updated_input.get_or_insert_with(|| request.input.clone());
            allow.tool_use_id.clone_from(&request.tool_use_id);
        }
        PermissionResult::Deny(deny) => deny.tool_use_id.clone_from(&request.tool_use_id),
        PermissionResult::Unknown(_) => {}
    }
    answer
}

/// The input an engine runs after an allow: the changed one, or the one it asked about.
pub fn input_to_run(request: &CanUseTool, allow: Allow) -> Value {
    allow.updated_input.unwrap_or_else(|| request.input.clone())
}

/// Stands between the part of a system prompt that never changes and the rest. It is not part of the prompt.
pub const PROMPT_BOUNDARY: &str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__";

/// A system prompt as one text, without [`PROMPT_BOUNDARY`].
pub fn system_prompt_text(prompt: &SystemPrompt) -> String {
    let text = match prompt {
        SystemPrompt::Text(text) => text.clone(),
        SystemPrompt::Parts(parts) => parts.join("\n\n"),
    };
    if !text.contains(PROMPT_BOUNDARY) {
        return text;
    }
    let parts = text.split(PROMPT_BOUNDARY).map(str::trim).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

/// The call of a `tool_progress`. Its own `tool_use_id` is synthetic (`bash-progress-0`).
pub fn progress_call(progress: &ToolProgress) -> &ToolUseId {
    progress.parent_tool_use_id.as_ref().unwrap_or(&progress.tool_use_id)
}

/// The calls that a summary names; without names, the most recent pending one.
pub fn summarised_calls(summary: &ToolUseSummary, calls: &Calls) -> Vec<ToolUseId> {
    match &summary.preceding_tool_use_ids {
        Some(ids) => ids.clone(),
        None => calls.pending().last().cloned().into_iter().collect(),
    }
}

/// Tracks the tool calls of a conversation, in any order of frames.
#[derive(Clone, Debug, Default)]
pub struct Calls(Vec<(ToolUseId, CallState)>);

/// The state of a tool call. It never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CallState {
    /// The model is still writing its input.
    Announced,
    /// The input is complete.
    Complete,
    /// The tool has reported progress.
    Running,
    /// There is a result.
    Done,
}

impl Calls {
    /// Handles the next frame of the stream.
    pub fn handle(&mut self, frame: &ToHost) {
        match frame {
            ToHost::StreamEvent(event) => {
                if let StreamEvent::ContentBlockStart(start) = &event.event
                    && let Some(call) = start.content_block.as_tool_use()
                {
                    self.reach(&call.id, CallState::Announced);
                }
            }
            ToHost::Assistant(assistant) => {
                for call in assistant.message.content.iter().filter_map(ContentBlock::as_tool_use) {
                    self.reach(&call.id, CallState::Complete);
                }
            }
            ToHost::ToolProgress(progress) => {
                self.reach(progress_call(progress), CallState::Running)
            }
            ToHost::User(user) => {
                let Some(Content::Blocks(blocks)) = &user.message.content else { return };
                for block in blocks {
                    if let ContentBlock::ToolResult(result) = block {
                        self.reach(&result.tool_use_id, CallState::Done);
                    }
                }
            }
            ToHost::ToolUseSummary(summary) => {
                for id in summarised_calls(summary, self) {
                    self.reach(&id, CallState::Done);
                }
            }
            _ => {}
        }
    }

    /// The state of a call.
    pub fn state(&self, id: &ToolUseId) -> Option<CallState> {
        self.0.iter().find(|(known, _)| known == id).map(|(_, state)| *state)
    }

    /// The calls without a result, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &ToolUseId> {
        self.0.iter().filter(|(_, state)| *state != CallState::Done).map(|(id, _)| id)
    }

    fn reach(&mut self, id: &ToolUseId, state: CallState) {
        match self.0.iter_mut().find(|(known, _)| known == id) {
            Some((_, known)) => *known = state.max(*known),
            None => self.0.push((id.clone(), state)),
        }
    }
}

/// Replaces lone `\uD8xx` escapes, which JSON allows and Rust's strings do not, by `\uFFFD`. `None` if there are
/// none, so that decoding the line again is pointless.
pub fn replace_lone_surrogates(line: &str) -> Option<String> {
    let mut repaired = String::with_capacity(line.len());
    let mut rest = line;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        repaired.push_str(before);
        let (keep, length) = match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (true, 12),
            (Some(0xD800..=0xDFFF), _) => (false, 6),
            (Some(_), _) => (true, 6),
            // A short escape such as `\n` or `\\`, or a stray backslash at the end.
            (None, _) => (true, 1 + escape[1..].chars().next().map_or(0, char::len_utf8)),
        };
        repaired.push_str(if keep { &escape[..length] } else { "\\ufffd" });
        found |= !keep;
        rest = &escape[length..];
    }
    repaired.push_str(rest);
    found.then_some(repaired)
}

/// The value of a `\uXXXX` escape at the beginning of the text.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
#[path = "quirks_tests.rs"]
mod tests;
