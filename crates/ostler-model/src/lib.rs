//! What the engine needs of a model: answer a conversation with a stream of events.
//!
//! The events are those of the Messages API, also for models without a network: the reader
//! (partial messages, the accumulator, record and replay) need not know where they come from. To read the client,
//! begin with `attempts` (one answer out of several attempts), then `http` (one attempt); `retry`, `sse`, `cache`,
//! `thinking` and [`pricing`] are pure.

mod alias;
mod api_model;
mod attempts;
pub mod base_prompt;
mod cache;
mod client;
mod config;
mod credential;
mod error;
mod http;
pub mod ledger;
pub mod login;
mod not_logged_in;
#[cfg(feature = "offline")]
pub mod offline;
mod prices;
pub mod pricing;
pub mod record;
mod request;
mod retry;
pub mod sayable;
mod server_tool;
mod size;
mod thinking;
mod tool_output;

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use ostler_proto::api::{Message, StreamEvent};
use ostler_proto::message::AssistantError;
use serde::{Deserialize, Serialize};

pub use self::alias::{Aliases, OPUSPLAN};
pub use self::api_model::ApiModel;
pub use self::cache::Cache;
pub use self::client::is_loopback;
pub use self::config::{ApiConfig, ConfigError, DEFAULT_BASE_URL, Header, LOGIN_BETA, Timeouts};
pub use self::credential::{Credential, Give, Renewal};
pub use self::error::ModelError;
pub use self::not_logged_in::NotLoggedIn;
pub use self::prices::Prices;
pub use self::request::{ChatMessage, Request, Sampling, ToolSpec};
pub use self::retry::RetryPolicy;
pub use self::server_tool::{ServerTool, WebSearch};
pub use self::size::MAX_RESPONSE_BYTES;
pub use self::thinking::{Effort, Thinking, ThinkingDisplay};
pub use self::tool_output::{ToolError, ToolOutput};

/// The name of the tool with which a model gives a structured answer.
pub const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// Marks an interruption during a response of the model. Hosts look for this text.
pub const INTERRUPTED: &str = "[Request interrupted by user]";
/// Marks an interruption during tool calls.
pub const INTERRUPTED_TOOLS: &str = "[Request interrupted by user for tool use]";
/// What the model reads about a call that the user interrupted.
pub const INTERRUPTED_CALL: &str = "The call was stopped: the user interrupted the turn.";

/// A model.
pub trait Model: Send + Sync {
    /// The name a user sees, and `init` reports.
    fn name(&self) -> &str;

    /// Answers one request. Dropping the stream cancels it.
    fn respond(&self, request: Request) -> EventStream;

    /// A prompt of the user is about to be answered. A fallback no longer replaces its model.
    fn prompt_began(&self) {}
}

/// The events of an answer, or the error that ended it.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// Something that happens while a model answers. Exhaustive, because the loop must handle a new one.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "handed over once and taken apart at once")]
pub enum ModelEvent {
    /// The API's id of the request whose answer follows.
    Named(String),
    /// The next event of the response.
    Stream(StreamEvent),
    /// The response as a whole, without stream events: the answer to a request without a stream.
    Whole(Message),
    /// An attempt failed before its first block, and another one will follow.
    Retry(Retry),
    /// Another model takes over from here on.
    Fallback(Fallback),
}

/// An attempt failed and another one will follow.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// The number of the failed attempt, from 1.
    pub attempt: u64,
    /// The most retries.
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
    /// Why.
    pub trigger: FallbackTrigger,
}

/// Why another model takes over. The names are those of the frame `model_fallback`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FallbackTrigger {
    /// The API has no capacity for the model, three times in a row.
    #[default]
    Overloaded,
    /// The API failed.
    ServerError,
    /// The API does not know the model.
    ModelNotFound,
    /// The API refused the request, and will refuse it again.
    LastResort,
}

impl FallbackTrigger {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::ModelNotFound => "model_not_found",
            Self::LastResort => "last_resort",
        }
    }
}
