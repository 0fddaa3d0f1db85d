//! The events of a streamed response, in the order the API sends them:
//! `message_start`, then per block `content_block_start`, deltas and `content_block_stop`, then `message_delta`
//! and `message_stop`. `ping` may come anywhere, `error` ends the stream.

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::{ContentBlock, Message, StopReason, Usage};
use crate::{Extra, UnknownObject};

/// One event of a streamed response.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type")]
#[non_exhaustive]
pub enum StreamEvent {
    /// The response begins, still without content.
    MessageStart(Box<MessageStart>),
    /// A block begins.
    ContentBlockStart(ContentBlockStart),
    /// A delta of a block.
    ContentBlockDelta(ContentBlockDelta),
    /// A block is complete.
    ContentBlockStop(ContentBlockStop),
    /// The stop reason and the final usage.
    MessageDelta(Box<MessageDelta>),
    /// The response is complete.
    MessageStop(MessageStop),
    /// Keeps the connection open.
    Ping(Ping),
    /// The response failed midway.
    Error(ErrorEvent),
    /// An event this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `message_start`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(new(message))]
#[non_exhaustive]
pub struct MessageStart {
    /// The message without content.
    pub message: Message,
    /// Unknown fields.
    pub extra: Extra,
}

/// `content_block_start`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(new(index, content_block))]
#[non_exhaustive]
pub struct ContentBlockStart {
    /// Position of the block in the message.
    pub index: u64,
    /// The block as it begins: empty text, empty input.
    pub content_block: ContentBlock,
    /// Unknown fields.
    pub extra: Extra,
}

/// `content_block_delta`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(new(index, delta))]
#[non_exhaustive]
pub struct ContentBlockDelta {
    /// Position of the block in the message.
    pub index: u64,
    /// The delta.
    pub delta: Delta,
    /// Unknown fields.
    pub extra: Extra,
}

/// `content_block_stop`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ContentBlockStop {
    /// Position of the block in the message.
    pub index: u64,
    /// Unknown fields.
    pub extra: Extra,
}

/// `message_delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct MessageDelta {
    /// What changed on the message.
    pub delta: MessageChange,
    /// The final counts.
    pub usage: Option<Usage>,
    /// What the API cut out of the context.
    pub context_management: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The `delta` of a `message_delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct MessageChange {
    /// Why the model stopped.
    #[wire(nullable)]
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that was hit, if one was.
    #[wire(nullable)]
    pub stop_sequence: Option<String>,
    /// More about a stop.
    pub stop_details: Option<Value>,
    /// The code-execution container, if one was used.
    pub container: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `message_stop`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct MessageStop {
    /// Unknown fields.
    pub extra: Extra,
}

/// `ping`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct Ping {
    /// Unknown fields.
    pub extra: Extra,
}

/// `error`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ErrorEvent {
    /// What went wrong.
    pub error: ApiError,
    /// The failed request at the API.
    pub request_id: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The API's error object, also the body of a failed HTTP request (under `error`).
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ApiError {
    /// For instance `overloaded_error`.
    pub r#type: String,
    /// For people.
    pub message: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A delta of a block.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type")]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    TextDelta(TextDelta),
    /// More of a tool call's arguments, as text that is JSON only once complete.
    InputJsonDelta(InputJsonDelta),
    /// More reasoning.
    ThinkingDelta(ThinkingDelta),
    /// The signature of a thinking block.
    SignatureDelta(SignatureDelta),
    /// One more citation.
    CitationsDelta(CitationsDelta),
    /// A delta this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `text_delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct TextDelta {
    /// The text to append.
    pub text: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `input_json_delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct InputJsonDelta {
    /// The characters to append.
    pub partial_json: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `thinking_delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ThinkingDelta {
    /// The reasoning to append.
    pub thinking: String,
    /// A running estimate, when the text itself is withheld.
    pub estimated_tokens: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `signature_delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct SignatureDelta {
    /// The signature to append.
    pub signature: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `citations_delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct CitationsDelta {
    /// The citation.
    pub citation: Value,
    /// Unknown fields.
    pub extra: Extra,
}
