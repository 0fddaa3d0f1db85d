//! The Claude Agent SDK for Rust, for every engine with its protocol.
//!
//! Most programs want the crate `ostler`, which is this one with an engine built in; start with its documentation.
//! Without that engine, this crate runs one executable per session: Ostler's, or Claude Code.
//!
//! ```no_run
//! # async fn example() -> Result<(), ostler_sdk::Error> {
//! use ostler_sdk::{Options, query};
//!
//! let mut messages = query("What is in this folder?", Options::new().executable("claude"));
//! while let Some(message) = messages.next().await {
//!     if let Some(text) = message?.text() {
//!         println!("{text}");
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! - [`query`], [`prompt`], [`prompt_as`]: one prompt, answered with messages, a result or a value.
//! - [`Client`]: a conversation; [`Handle`]: requests to a session from any task.
//! - [`Options`]: the options of a session, in groups. No settings files are read by default.
//! - [`Message`]: what the host reads. Kinds and fields that this version does not know are preserved. [`Fold`] joins
//!   the deltas of partial messages.
//! - [`Decision`], [`Answers`], [`Elicited`], [`Dialog`], [`Hook`]: the host's answers. If a callback panics or takes
//!   too long, the answer is no.
//! - [`mcp`]: tools made of functions.
//! - [`SessionStore`]: sessions in your own storage, such as a database.
//! - [`Error`]: classified by [`ErrorKind`], with exit code, stderr and API status where available.
//! - [`transport`]: how a session reaches its engine, for programs with their own engine.
//!
//! Dropping a [`Query`] or a [`Client`] ends its engine with everything that it started.
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!(
    "ostler-sdk runs on Unix only (Linux, macOS): it relies on process groups, signals and file permissions. On Windows, use WSL"
);

mod answer;
mod callback;
mod client;
mod dialog;
mod elicitation;
mod error;
mod fold;
mod handle;
pub mod hook;
mod json_size;
pub mod mcp;
mod message;
pub mod options;
mod pending;
pub mod permission;
mod process;
mod query;
mod session;
pub mod session_store;
pub mod transport;
mod version;

pub use ostler_proto as proto;
pub use tokio_util::sync::CancellationToken;

pub use self::answer::{AnswerError, answer_schema, read_answer};
pub use self::callback::{AtOnce, Later, Reply};
pub use self::client::{Client, Prompt, Turn};
pub use self::dialog::{Dialog, DialogRequest};
pub use self::elicitation::{ElicitationRequest, Elicited};
pub use self::error::{Error, ErrorKind, SessionError};
pub use self::fold::Fold;
pub use self::handle::Handle;
pub use self::hook::Hook;
pub use self::message::Message;
pub use self::options::{IntoOptions, Options, OptionsFor, PermissionMode};
pub use self::permission::{Answers, Decision, PermissionRequest, QuestionRequest};
pub use self::process::Process;
pub use self::query::{Query, prompt, prompt_as, query};
pub use self::session_store::{InMemorySessionStore, SessionStore};
pub use self::version::EngineVersion;

/// Guarantees to programs: sessions can move between threads, and threads can share handles and errors.
const _: () = {
    const fn sends<T: Send>() {}
    const fn shares<T: Send + Sync>() {}
    sends::<Client>();
    sends::<Query>();
    sends::<Turn<'_>>();
    shares::<Handle>();
    shares::<Error>();
    shares::<Options>();
    shares::<Message>();
    shares::<Decision>();
    shares::<Hook>();
    shares::<Box<dyn SessionStore>>();
};
