//! AG-UI 1.0 for a server, without the server: types and pure functions only, no IO, no clock.
//!
//! - [`event`]: the 31 events a run may send; [`message`]: the conversation as both sides write it;
//! - [`input`]: what a client sends to begin a run;
//! - [`verify`]: the order of events that official clients insist on;
//! - [`translate`]: what the agent's messages become as events;
//! - [`downgrade`]: the same for clients from before 1.0;
//! - [`patch`]: differences of JSON values, for shared state;
//! - [`history`]: what of a resent conversation is new; [`prompt`]: what the agent is told of it.
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

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Whatever somebody wants to say about a thing, by key.
pub type Metadata = serde_json::Map<String, serde_json::Value>;
