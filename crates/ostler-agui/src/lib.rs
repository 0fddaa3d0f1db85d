//! AG-UI 1.0 for servers: types and pure functions, no IO, no clock.
//!
//! - [`event`]: the 31 events that a run may send; [`message`]: the messages of a conversation, used by both sides;
//! - [`input`]: the request that starts a run;
//! - [`verify`]: the order of events that official clients require;
//! - [`translate`]: turns the agent's messages into events;
//! - [`downgrade`]: rewrites events for clients older than 1.0;
//! - [`patch`]: differences between JSON values, for shared state;
//! - [`history`]: finds what is new in a resent conversation; [`prompt`]: turns it into a prompt for the agent.
//!
//! ```
//! use ostler_agui::input::RunAgentInput;
//! use ostler_agui::translate::{Settings, Translator};
//!
//! let body = r#"{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"hi"}]}"#;
//! let input = RunAgentInput::from_json(body.as_bytes()).unwrap();
//! let mut run = Translator::new(Settings::new(&input.thread_id, &input.run_id));
//! let started = run.start();
//! assert_eq!(
//!     serde_json::to_string(&started).unwrap(),
//!     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#
//! );
//! ```
#![warn(missing_docs)]

pub mod downgrade;
pub mod event;
pub mod history;
pub mod input;
pub mod message;
pub mod patch;
pub mod prompt;
mod read;
pub mod transcript;
pub mod translate;
pub mod verify;

/// The version of the protocol that this crate implements.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Additional data by key.
pub type Metadata = serde_json::Map<String, serde_json::Value>;
