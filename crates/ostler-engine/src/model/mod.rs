//! What the engine needs of a model: answer a conversation with a stream of events.
//!
//! The events are those of the Messages API, also for models that speak to no network: whoever reads them
//! (partial messages, the accumulator, record and replay) need not know where they come from.

mod http;
mod sse;

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use ostler_proto::api::{ContentBlock, Message, Role, StreamEvent};
use ostler_proto::message::AssistantError;
use serde::Serialize;
use serde_json::Value;

pub use self::http::{ApiConfig, ApiModel, Credential, DEFAULT_BASE_URL};

/// A model.
pub trait Model: Send + Sync {
    /// The name a user sees, and `init` reports.
    fn name(&self) -> &str;

    /// Answers one request. Dropping the stream cancels it.
    fn respond(&self, request: Request) -> EventStream;
}

/// What happens while a model answers, or the error that ended it.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// Something that happens while a model answers.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "handed over once and taken apart at once")]
#[non_exhaustive]
pub enum ModelEvent {
    /// The next event of the response.
    Stream(StreamEvent),
    /// The response as a whole, without any stream events; the answer to a request that was sent again that way.
    Whole(Message),
    /// An attempt failed before any block came, and another one will follow.
    Retry(Retry),
    /// Another model takes over from here on.
    Fallback(Fallback),
}

/// An attempt failed and another one will follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Which attempt failed, from 1.
    pub attempt: u64,
    /// How many there will be.
    pub max_retries: u64,
    /// How long until the next one.
    pub delay: Duration,
    /// HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The kind of failure.
    pub error: AssistantError,
}

/// Another model takes over.
#[derive(Clone, Debug, PartialEq)]
pub struct Fallback {
    /// The model before.
    pub from: String,
    /// The model now.
    pub to: String,
}

/// Everything a model gets to see. Serialises to the body of a Messages API call.
///
/// A later request of a conversation begins with the same bytes as the earlier one, so that the vendor's cache
/// hits: the fields stand in the order in which they change.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// The model to ask.
    pub model: String,
    /// The most it may answer.
    pub max_tokens: u64,
    /// Always on: the engine reads streams only.
    pub stream: bool,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// The system prompt.
    pub system: String,
    /// The conversation so far, user first.
    pub messages: Vec<Said>,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Said {
    /// Who.
    pub role: Role,
    /// What.
    pub content: Vec<ContentBlock>,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Value,
}

/// Why a model did not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The API said no.
    #[error("API Error: {status} {message}")]
    Status {
        /// HTTP status.
        status: u16,
        /// The API's error type, such as `overloaded_error`.
        kind: String,
        /// For people.
        message: String,
    },
    /// The API could not be reached, or the connection broke.
    #[error("connection to the model failed: {0}")]
    Connection(String),
    /// The stream broke off, or stopped making sense, after the answer had begun.
    #[error("the model's answer broke off: {0}")]
    Broken(String),
    /// The answer makes no sense.
    #[error("the model's answer is not understood: {0}")]
    Protocol(String),
}

impl ModelError {
    /// Whether the request itself is wrong, so that sending it again cannot help.
    pub fn is_fault_of_request(&self) -> bool {
        matches!(self, Self::Status { status: 400 | 413, .. })
    }

    /// Whether the answer had begun when it failed.
    pub fn is_broken_stream(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    /// The kind of failure, as hosts know them.
    pub fn kind(&self) -> AssistantError {
        match self {
            Self::Status { status: 401 | 403, .. } => AssistantError::AuthenticationFailed,
            Self::Status { status: 404, .. } => AssistantError::ModelNotFound,
            Self::Status { status: 413, .. } => AssistantError::InvalidRequest,
            Self::Status { status: 429, .. } => AssistantError::RateLimit,
            Self::Status { status: 500.., .. } => AssistantError::ServerError,
            _ => AssistantError::Unknown,
        }
    }
}
