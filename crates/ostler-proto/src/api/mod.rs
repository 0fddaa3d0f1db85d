//! The parts of the Messages API that travel inside frames: messages, content blocks, usage and stream events.
//!
//! `assistant` frames carry a [`Message`] with one finished block each; `user` frames carry a [`Content`];
//! `stream_event` frames carry a [`StreamEvent`] exactly as the API sent it.

mod accumulate;
mod block;
mod stream;
mod usage;

use ostler_proto_derive::Wire;
use serde_json::Value;

pub use self::accumulate::{Accumulator, Folded, INVALID_INPUT, OutOfOrder};
pub use self::block::*;
pub use self::stream::*;
pub use self::usage::*;
use crate::Extra;

/// A response of the model, whole or (in an `assistant` frame) one block of it.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct Message {
    /// `msg_…`; all frames that stem from one response share it.
    pub id: Option<String>,
    /// Always `message`.
    pub r#type: Option<String>,
    /// Always `assistant`.
    pub role: Role,
    /// The model that answered; [`SYNTHETIC_MODEL`] when the engine wrote the message itself.
    pub model: String,
    /// The blocks.
    pub content: Vec<ContentBlock>,
    /// Why the model stopped; `None` while the response is still coming.
    #[wire(nullable)]
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that was hit, if one was.
    #[wire(nullable)]
    pub stop_sequence: Option<String>,
    /// More about a stop, for instance a refusal's category.
    pub stop_details: Option<Value>,
    /// Tokens. In an `assistant` frame these are the first event's, not the final ones.
    pub usage: Option<Usage>,
    /// The code-execution container, if one was used.
    pub container: Option<Value>,
    /// What the API cut out of the context.
    pub context_management: Option<Value>,
    /// What the API's diagnostics beta reported.
    pub diagnostics: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `model` of messages that no model wrote: API errors and local command output.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";

/// The role of a message's author.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum Role {
    /// The person, or tool results on their behalf.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A role this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum StopReason {
    /// It finished.
    EndTurn,
    /// The output limit was reached.
    MaxTokens,
    /// A stop sequence came up.
    StopSequence,
    /// It waits for tool results.
    ToolUse,
    /// A long server-side turn was paused; send it back to continue.
    PauseTurn,
    /// It declined to answer.
    Refusal,
    /// The context window is full.
    ModelContextWindowExceeded,
    /// A reason this version does not know.
    #[wire(other)]
    Other(Box<str>),
}
