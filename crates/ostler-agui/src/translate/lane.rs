//! Translates the messages of one speaker: text, reasoning and calls, as deltas or complete.

use std::collections::{BTreeMap, BTreeSet};

use ostler_proto::api::{ContentBlock, Delta, StopReason, StreamEvent, ToolUseBlock};
use ostler_proto::build;
use ostler_proto::message::Assistant;
use serde_json::Value;

use super::{Speaker, Translator};
use crate::event::{Body, EncryptedSubtype, Event, ReasoningRole, TextRole};

/// The state of one speaker.
#[derive(Debug, Default)]
pub(super) struct Lane {
    message: Option<StreamedMessage>,
    /// The API's ids of messages that were streamed and are finished.
    past: BTreeSet<String>,
}

impl Lane {
    /// Whether a message is being streamed.
    pub(super) fn is_streaming(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.is_streamed && !message.complete)
    }
}

/// A message of the model, as received so far.
#[derive(Debug)]
struct StreamedMessage {
    /// The API's id.
    api_id: String,
    /// The id of its first text, and of the message that its calls belong to.
    id: String,
    is_streamed: bool,
    complete: bool,
    /// The id of the open text.
    text: Option<String>,
    texts: u32,
    thoughts: u32,
    open: BTreeMap<u64, OpenBlock>,
    blocks: Vec<StreamedBlock>,
    stop_reason: Option<StopReason>,
}

/// A block that was streamed, so that it is not sent again when the complete message arrives.
#[derive(Debug)]
struct StreamedBlock {
    kind: Kind,
    text: String,
    /// Whether the complete block has arrived too.
    whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
}

#[derive(Debug)]
enum OpenBlock {
    Text { block: usize },
    Thought { block: usize, id: String, signature: String },
    Call { id: String },
    Other,
}

impl Translator {
    pub(super) fn stream_delta(&mut self, speaker: &Speaker, event: &StreamEvent) {
        match event {
            StreamEvent::MessageStart(start) => {
                self.usage.begin(speaker, &start.message.model, start.message.usage.as_ref());
                let api_id = start.message.id.clone().unwrap_or_default();
                self.begin_message(speaker, &api_id, true);
            }
            StreamEvent::ContentBlockStart(start) => {
                self.begin_block(speaker, start.index, &start.content_block);
            }
            StreamEvent::ContentBlockDelta(delta) => {
                self.extend_block(speaker, delta.index, &delta.delta);
            }
            StreamEvent::ContentBlockStop(stop) => {
                let block = self.current_message(speaker).open.remove(&stop.index);
                if let Some(block) = block {
                    self.end_block(speaker, block, true);
                }
            }
            StreamEvent::MessageDelta(delta) => {
                self.usage.update(speaker, delta.usage.as_ref());
                self.current_message(speaker).stop_reason.clone_from(&delta.delta.stop_reason);
            }
            StreamEvent::MessageStop(_) => {
                self.close_lane(speaker);
                self.current_message(speaker).complete = true;
            }
            _ => {}
        }
    }

    pub(super) fn whole_message(&mut self, speaker: &Speaker, whole: &Assistant) {
        let api_id = whole.message.id.clone().unwrap_or_else(|| whole.uuid.to_string());
        let lane = self.lane(speaker);
        let is_past = lane.past.contains(&api_id);
        let is_present = lane.message.as_ref().is_some_and(|message| message.api_id == api_id);
        if !is_past && !is_present {
            self.begin_message(speaker, &api_id, false);
        }
        for block in &whole.message.content {
            match block {
                // Calls have their own ids, by which repetitions are recognised.
                ContentBlock::ToolUse(call) | ContentBlock::ServerToolUse(call) => {
                    self.whole_call(speaker, call);
                }
                _ if is_past => {}
                ContentBlock::Text(text) => self.whole_text(speaker, &text.text),
                ContentBlock::Thinking(thought) => {
                    let signature = thought.signature.as_deref().unwrap_or_default();
                    self.whole_thought(speaker, &thought.thinking, signature);
                }
                ContentBlock::RedactedThinking(thought) => {
                    if self.claim(speaker, Kind::Thought, "").is_none() {
                        self.redacted_thought(speaker, &thought.data);
                    }
                }
                other => self.other_block(speaker, other),
            }
        }
    }

    /// The current message; starts one if its start was missed.
    fn current_message(&mut self, speaker: &Speaker) -> &mut StreamedMessage {
        if self.lane(speaker).message.is_none() {
            self.begin_message(speaker, "", true);
        }
        self.lane(speaker).message.as_mut().expect("a message was begun")
    }

    fn begin_message(&mut self, speaker: &Speaker, api_id: &str, is_streamed: bool) {
        self.close_lane(speaker);
        let id = self.fresh(if api_id.is_empty() { "message" } else { api_id });
        let message = StreamedMessage {
            api_id: api_id.to_owned(),
            id,
            is_streamed,
            complete: false,
            text: None,
            texts: 0,
            thoughts: 0,
            open: BTreeMap::new(),
            blocks: Vec::new(),
            stop_reason: None,
        };
        let lane = self.lane(speaker);
        if let Some(before) = lane.message.replace(message).filter(|before| before.is_streamed) {
            lane.past.insert(before.api_id);
        }
    }

    /// An id unique in the thread. The API's ids are kept, unless they repeat.
    fn fresh(&mut self, wish: &str) -> String {
        let mut id = wish.to_owned();
        let mut number = 1;
        while !self.settings.taken.insert(id.clone()) {
            number += 1;
            id = format!("{wish}-{}-{number}", self.settings.run_id);
        }
        id
    }

    fn begin_block(&mut self, speaker: &Speaker, index: u64, block: &ContentBlock) {
        // An unfinished block is closed before the next.
        if let Some(before) = self.current_message(speaker).open.remove(&index) {
            self.end_block(speaker, before, false);
        }
        let open = match block {
            ContentBlock::Text(text) => {
                let block = self.record_block(speaker, Kind::Text);
                self.extend_text(speaker, block, &text.text);
                OpenBlock::Text { block }
            }
            ContentBlock::Thinking(thought) => {
                let block = self.record_block(speaker, Kind::Thought);
                let id = self.open_thought(speaker, false);
                self.extend_thought(speaker, block, &id, &thought.thinking);
                let signature = thought.signature.clone().unwrap_or_default();
                OpenBlock::Thought { block, id, signature }
            }
            ContentBlock::RedactedThinking(thought) => {
                let block = self.record_block(speaker, Kind::Thought);
                self.redacted_thought(speaker, &thought.data);
                self.current_message(speaker).blocks[block].text.clear();
                OpenBlock::Other
            }
            ContentBlock::ToolUse(call) | ContentBlock::ServerToolUse(call) => {
                self.open_call(speaker, call);
                OpenBlock::Call { id: call.id.to_string() }
            }
            other => {
                self.other_block(speaker, other);
                OpenBlock::Other
            }
        };
        self.current_message(speaker).open.insert(index, open);
    }

    fn extend_block(&mut self, speaker: &Speaker, index: u64, delta: &Delta) {
        match (self.current_message(speaker).open.get_mut(&index), delta) {
            (Some(OpenBlock::Text { block }), Delta::TextDelta(delta)) => {
                let block = *block;
                self.extend_text(speaker, block, &delta.text);
            }
            (Some(OpenBlock::Thought { block, id, .. }), Delta::ThinkingDelta(delta)) => {
                let (block, id) = (*block, id.clone());
                self.extend_thought(speaker, block, &id, &delta.thinking);
            }
            (Some(OpenBlock::Thought { signature, .. }), Delta::SignatureDelta(delta)) => {
                signature.push_str(&delta.signature);
            }
            (Some(OpenBlock::Call { id }), Delta::InputJsonDelta(delta)) => {
                let id = id.clone();
                self.extend_call(&id, &delta.partial_json);
            }
            // A text delta whose start was missed still counts as text.
            (None, Delta::TextDelta(delta)) if !delta.text.is_empty() => {
                let block = self.record_block(speaker, Kind::Text);
                self.current_message(speaker).open.insert(index, OpenBlock::Text { block });
                self.extend_text(speaker, block, &delta.text);
            }
            _ => {}
        }
    }

    /// Ends a block. `finished` is false if the block was cut off.
    fn end_block(&mut self, speaker: &Speaker, block: OpenBlock, finished: bool) {
        match block {
            // The next block may be text as well, and continues the same message.
            OpenBlock::Text { .. } | OpenBlock::Other => {}
            OpenBlock::Thought { id, signature, .. } => {
                // An incomplete signature is useless.
                let signature = if finished { signature.as_str() } else { "" };
                self.close_thought(speaker, &id, signature);
            }
            OpenBlock::Call { id } => self.close_call(&id),
        }
    }

    /// Closes everything that the speaker has open.
    pub(super) fn close_lane(&mut self, speaker: &Speaker) {
        let Some(message) = &mut self.lane(speaker).message else { return };
        let open = std::mem::take(&mut message.open);
        for block in open.into_values() {
            self.end_block(speaker, block, false);
        }
        self.close_text(speaker);
    }

    // --- text

    fn record_block(&mut self, speaker: &Speaker, kind: Kind) -> usize {
        let blocks = &mut self.current_message(speaker).blocks;
        blocks.push(StreamedBlock { kind, text: String::new(), whole: false });
        blocks.len() - 1
    }

    fn extend_text(&mut self, speaker: &Speaker, block: usize, text: &str) {
        let block = &mut self.current_message(speaker).blocks[block];
        if text.is_empty() || block.whole {
            return;
        }
        block.text.push_str(text);
        self.send_text(speaker, text);
    }

    fn send_text(&mut self, speaker: &Speaker, text: &str) {
        let message_id = self.open_text(speaker);
        self.emit(speaker, Body::TextMessageContent { message_id, delta: text.to_owned() });
    }

    /// The id of the open text; starts one if needed.
    fn open_text(&mut self, speaker: &Speaker) -> String {
        let message = self.current_message(speaker);
        if let Some(open) = &message.text {
            return open.clone();
        }
        message.texts += 1;
        // Text after a call is a separate message, so that clients show it after the call.
        let (base, number) = (message.id.clone(), message.texts);
        let id = if number == 1 { base } else { self.fresh(&format!("{base}-{number}")) };
        self.current_message(speaker).text = Some(id.clone());
        self.message_ids.push(id.clone());
        let role = Some(TextRole::Assistant);
        self.emit(speaker, Body::TextMessageStart { message_id: id.clone(), role, name: None });
        id
    }

    pub(super) fn close_text(&mut self, speaker: &Speaker) {
        let Some(message) = &mut self.lane(speaker).message else { return };
        let stop_reason = message.stop_reason.clone();
        let Some(message_id) = message.text.take() else { return };
        let mut event = Event::new(Body::TextMessageEnd { message_id });
        if let Some(reason) = stop_reason.as_ref().and_then(unusual) {
            event = event.with_metadata("stopReason", reason);
        }
        self.emit_event(speaker, event);
    }

    fn whole_text(&mut self, speaker: &Speaker, text: &str) {
        match self.claim(speaker, Kind::Text, text) {
            Some(rest) if rest.is_empty() => {}
            Some(rest) => self.send_text(speaker, &rest),
            None if text.is_empty() => {}
            None => {
                self.send_text(speaker, text);
                if !self.current_message(speaker).is_streamed {
                    self.close_text(speaker);
                }
            }
        }
    }

    /// If a complete block was streamed before, returns the text that the deltas lack.
    fn claim(&mut self, speaker: &Speaker, kind: Kind, text: &str) -> Option<String> {
        let blocks = &mut self.current_message(speaker).blocks;
        let block = blocks.iter_mut().find(|block| block.kind == kind && !block.whole)?;
        block.whole = true;
        Some(text.strip_prefix(block.text.as_str()).unwrap_or_default().to_owned())
    }

    // --- reasoning

    fn open_thought(&mut self, speaker: &Speaker, redacted: bool) -> String {
        self.close_text(speaker);
        let message = self.current_message(speaker);
        message.thoughts += 1;
        let wish = format!("{}-thought-{}", message.id, message.thoughts);
        let id = self.fresh(&wish);
        self.message_ids.push(id.clone());
        self.emit(speaker, Body::ReasoningStart { message_id: id.clone() });
        let role = ReasoningRole::Reasoning;
        let mut start = Event::new(Body::ReasoningMessageStart { message_id: id.clone(), role });
        if redacted {
            start = start.with_metadata("kind", "redacted_thinking");
        }
        self.emit_event(speaker, start);
        id
    }

    fn extend_thought(&mut self, speaker: &Speaker, block: usize, id: &str, text: &str) {
        let block = &mut self.current_message(speaker).blocks[block];
        if text.is_empty() || block.whole {
            return;
        }
        block.text.push_str(text);
        self.send_thought(speaker, id, text);
    }

    fn send_thought(&mut self, speaker: &Speaker, id: &str, text: &str) {
        let (message_id, delta) = (id.to_owned(), text.to_owned());
        self.emit(speaker, Body::ReasoningMessageContent { message_id, delta });
    }

    fn close_thought(&mut self, speaker: &Speaker, id: &str, signature: &str) {
        self.emit(speaker, Body::ReasoningMessageEnd { message_id: id.to_owned() });
        if !signature.is_empty() {
            self.emit(
                speaker,
                Body::ReasoningEncryptedValue {
                    subtype: EncryptedSubtype::Message,
                    entity_id: id.to_owned(),
                    encrypted_value: signature.to_owned(),
                },
            );
        }
        self.emit(speaker, Body::ReasoningEnd { message_id: id.to_owned() });
    }

    fn redacted_thought(&mut self, speaker: &Speaker, data: &str) {
        let id = self.open_thought(speaker, true);
        self.close_thought(speaker, &id, data);
    }

    fn whole_thought(&mut self, speaker: &Speaker, text: &str, signature: &str) {
        let blocks = &self.current_message(speaker).blocks;
        let number = blocks.iter().position(|block| block.kind == Kind::Thought && !block.whole);
        let Some(rest) = self.claim(speaker, Kind::Thought, text) else {
            let id = self.open_thought(speaker, false);
            if !text.is_empty() {
                self.send_thought(speaker, &id, text);
            }
            self.close_thought(speaker, &id, signature);
            return;
        };
        // While its deltas are still open, the missing text can be added.
        let open = self.current_message(speaker).open.values_mut().find_map(|block| match block {
            OpenBlock::Thought { block, id, signature } if Some(*block) == number => {
                Some((id.clone(), signature))
            }
            _ => None,
        });
        if let Some((id, streamed)) = open {
            if streamed.is_empty() {
                signature.clone_into(streamed);
            }
            if !rest.is_empty() {
                self.send_thought(speaker, &id, &rest);
            }
        }
    }

    // --- calls

    pub(super) fn parent_message(&mut self, speaker: &Speaker) -> String {
        self.current_message(speaker).id.clone()
    }

    /// Translates calls and results of tools that the provider runs, also of unknown types.
    fn other_block(&mut self, speaker: &Speaker, block: &ContentBlock) {
        let Ok(value) = serde_json::to_value(block) else { return };
        let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = field("type");
        if kind.ends_with("tool_result") && !field("tool_use_id").is_empty() {
            let content = value.get("content").cloned().unwrap_or_default();
            self.server_result(speaker, field("tool_use_id"), &content);
        } else if kind.ends_with("tool_use") && !field("id").is_empty() {
            let call = build!(ToolUseBlock {
                id: field("id").into(),
                name: field("name").to_owned(),
                input: value.get("input").cloned().unwrap_or_default()
            });
            self.whole_call(speaker, &call);
        }
    }
}

/// A stop reason that the user should see.
pub(super) fn unusual(reason: &StopReason) -> Option<String> {
    match reason {
        StopReason::EndTurn
        | StopReason::StopSequence
        | StopReason::ToolUse
        | StopReason::PauseTurn => None,
        other => serde_json::to_value(other).ok()?.as_str().map(str::to_owned),
    }
}
