//! Counts the tokens of a run from its messages.

use std::collections::HashMap;

use ostler_sdk::Message;
use ostler_sdk::proto::ToolUseId;
use ostler_sdk::proto::api::{self, StreamEvent};
use ostler_sdk::proto::message::TurnResult;

use crate::budget::Usage;

/// Counts tokens. A response reports its growing totals several times; each token is counted once.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// The tokens that each response has reported so far, by its id.
    responses: HashMap<String, Usage>,
    /// The current response of the main conversation and of each subagent.
    current: HashMap<Option<ToolUseId>, String>,
    total: Usage,
    stop_reason: Option<String>,
}

impl Meter {
    /// All tokens of the run.
    pub(crate) fn total(&self) -> Usage {
        self.total
    }

    /// How many responses have reported tokens.
    pub(crate) fn n_responses(&self) -> usize {
        self.responses.len()
    }

    /// The model's last stop reason.
    pub(crate) fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.as_deref()
    }

    /// Counts a message. Returns the newly reported tokens.
    pub(crate) fn observe(&mut self, message: &Message) -> Usage {
        match message {
            Message::Assistant(assistant) => self.note(
                assistant.message.id.clone().unwrap_or_default(),
                &assistant.message.usage.clone().unwrap_or_default(),
            ),
            Message::StreamEvent(stream) => {
                let parent = stream.parent_tool_use_id.clone();
                match &stream.event {
                    StreamEvent::MessageStart(start) => {
                        let id = start.message.id.clone().unwrap_or_default();
                        self.current.insert(parent, id.clone());
                        self.note(id, &start.message.usage.clone().unwrap_or_default())
                    }
                    StreamEvent::MessageDelta(delta) => {
                        if let (None, Some(reason)) = (&parent, &delta.delta.stop_reason) {
                            self.stop_reason = Some(reason.to_string());
                        }
                        match (self.current.get(&parent), &delta.usage) {
                            (Some(id), Some(usage)) => self.note(id.clone(), usage),
                            _ => Usage::default(),
                        }
                    }
                    _ => Usage::default(),
                }
            }
            _ => Usage::default(),
        }
    }

    /// Records the engine's totals. They are larger than the counts so far, because subagents and requests to the small
    /// model do not report every token during the run.
    pub(crate) fn settle(&mut self, result: &TurnResult) -> Usage {
        let mut all = Usage::default();
        for model in result.model_usage.values() {
            all.add(&Usage {
                input_tokens: model
                    .input_tokens
                    .saturating_add(model.cache_read_input_tokens)
                    .saturating_add(model.cache_creation_input_tokens),
                output_tokens: model.output_tokens,
                cached_tokens: model.cache_read_input_tokens,
            });
        }
        self.grow(all.beyond(&self.total))
    }

    fn note(&mut self, id: String, reported: &api::Usage) -> Usage {
        let reported = Usage {
            input_tokens: reported.total_input(),
            output_tokens: reported.output_tokens.unwrap_or_default(),
            cached_tokens: reported.cache_read_input_tokens.unwrap_or_default(),
        };
        let known = self.responses.entry(id).or_default();
        let new = reported.beyond(known);
        known.add(&new);
        self.grow(new)
    }

    fn grow(&mut self, new: Usage) -> Usage {
        self.total.add(&new);
        new
    }
}
