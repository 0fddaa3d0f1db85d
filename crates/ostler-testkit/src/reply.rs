//! The reply of a rule: content, usage and stop reason, or an HTTP error, and how it is delivered.
//!
//! A [`Reply`] is only a description. `message` fills in what depends on the request, `playback` delivers it.

use std::num::NonZeroUsize;

use serde::Deserialize;
use serde_json::Value;

use crate::block::Block;
use crate::interruption::{Action, Interruption};
use crate::object;
use crate::status::Status;

/// Starts an empty reply; add content and faults with the methods of [`Reply`].
pub fn reply() -> Reply {
    Reply::default()
}

/// One scripted answer to one request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    pub(crate) content: Vec<Block>,
    #[serde(deserialize_with = "object::only")]
    pub(crate) usage: Usage,
    pub(crate) stop_reason: Option<String>,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) stop_details: Option<Value>,
    pub(crate) model: Option<String>,
    pub(crate) status: Option<Status>,
    pub(crate) hold: Option<String>,
    pub(crate) delay_before_first_byte_ms: u64,
    pub(crate) delay_between_events_ms: u64,
    pub(crate) chunk_bytes: Option<NonZeroUsize>,
    pub(crate) ping_between_events: bool,
    pub(crate) missing_message_stop: bool,
    #[serde(deserialize_with = "object::list")]
    pub(crate) interruptions: Vec<Interruption>,
}

impl Reply {
    /// Adds a content block; the other content methods are short for this one.
    pub fn block(mut self, block: Block) -> Self {
        self.content.push(block);
        self
    }

    /// Adds text, streamed in a few pieces. `{{prompt}}` and `{{tool_result}}` in it are replaced by the
    /// request's prompt and the text of its newest tool result.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(Block::text(text))
    }

    /// Adds text that is streamed in exactly these pieces.
    pub fn text_pieces<T: Into<String>>(self, pieces: impl IntoIterator<Item = T>) -> Self {
        self.block(Block::text_pieces(pieces))
    }

    /// Adds thinking with its signature.
    pub fn thinking(self, thinking: impl Into<String>, signature: impl Into<String>) -> Self {
        self.block(Block::thinking(thinking, signature))
    }

    /// Adds thinking that the API redacts.
    pub fn redacted_thinking(self, data: impl Into<String>) -> Self {
        self.block(Block::RedactedThinking { data: data.into() })
    }

    /// Adds a tool call with an id made by the server. Templates work in the strings of `input`.
    pub fn tool_use(self, name: impl Into<String>, input: Value) -> Self {
        self.block(Block::tool_use(name, input))
    }

    /// Sets the reported token counts; those that are left out are estimated.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the stop reason. The default is `stop_sequence` if there is a stop sequence, else `tool_use` if there is a
    /// tool call, else `end_turn`.
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// Adds details of the stop reason, as the API does for a refusal.
    pub fn stop_details(mut self, details: Value) -> Self {
        self.stop_details = Some(details);
        self
    }

    /// Sets the stop sequence that the model has written.
    pub fn stop_sequence(mut self, sequence: impl Into<String>) -> Self {
        self.stop_sequence = Some(sequence.into());
        self
    }

    /// Names a model other than the requested one.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Answers with an HTTP error instead of a message.
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Delays the whole response, headers included, until the gate of this name is released.
    pub fn hold(mut self, gate: impl Into<String>) -> Self {
        self.hold = Some(gate.into());
        self
    }

    /// Waits before the first byte of the response, headers included.
    pub fn delay_before_first_byte_ms(mut self, milliseconds: u64) -> Self {
        self.delay_before_first_byte_ms = milliseconds;
        self
    }

    /// Waits between the events of a stream.
    pub fn delay_between_events_ms(mut self, milliseconds: u64) -> Self {
        self.delay_between_events_ms = milliseconds;
        self
    }

    /// Sends a stream in chunks of this many bytes, also if that splits events and characters.
    ///
    /// # Panics
    /// If `size` is zero.
    pub fn chunk_bytes(mut self, size: usize) -> Self {
        self.chunk_bytes = Some(NonZeroUsize::new(size).expect("a chunk has at least one byte"));
        self
    }

    /// Sends a ping between any two events.
    pub fn ping_between_events(mut self) -> Self {
        self.ping_between_events = true;
        self
    }

    /// Ends the stream cleanly, but without its `message_stop`.
    pub fn missing_message_stop(mut self) -> Self {
        self.missing_message_stop = true;
        self
    }

    /// Performs an action after the first `after_events` events; see [`Action`].
    pub fn interrupt(mut self, after_events: usize, action: Action) -> Self {
        self.interruptions.push(Interruption { after_events, action });
        self
    }

    /// Pauses the stream after its first `after_events` events until the gate of this name is released.
    pub fn gate(self, after_events: usize, name: impl Into<String>) -> Self {
        self.interrupt(after_events, Action::Gate(name.into()))
    }

    /// Sends nothing more after the first `after_events` events, and keeps the connection open.
    pub fn stall(self, after_events: usize) -> Self {
        self.interrupt(after_events, Action::Stall)
    }

    /// Breaks the connection after the first `after_events` events.
    pub fn cut(self, after_events: usize) -> Self {
        self.interrupt(after_events, Action::Cut)
    }
}

/// Token counts to report. Input is estimated from the request and output from the reply when not given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the request that were not in the cache.
    pub input_tokens: Option<u64>,
    /// Tokens of the reply.
    pub output_tokens: Option<u64>,
    /// Tokens of the request written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Tokens of the request read from the cache.
    pub cache_read_input_tokens: u64,
}

impl Usage {
    /// Input and output tokens, with nothing cached.
    pub fn tokens(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            ..Self::default()
        }
    }

    /// Adds the tokens that were written to and read from the cache.
    pub fn cached(mut self, creation: u64, read: u64) -> Self {
        self.cache_creation_input_tokens = creation;
        self.cache_read_input_tokens = read;
        self
    }
}
