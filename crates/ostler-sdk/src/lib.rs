//! The Claude Agent SDK for Rust, over any engine that speaks its protocol.
//!
//! Most programs want the crate `ostler`, which is this one with an engine built in; its documentation is the place to
//! learn all of this. On its own this crate runs an executable per session: Ostler's, or Claude Code.
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
//! - [`query`], [`prompt`], [`prompt_as`]: one prompt, as messages, as a result, as a value.
//! - [`Client`]: a conversation; [`Handle`]: what can be done to a session from anywhere.
//! - [`Options`]: what the session is to be like, in groups. No settings files are read by default.
//! - [`Message`]: what the session says. Kinds and fields this version does not know are kept. [`Fold`] puts the pieces
//!   of partial messages together.
//! - [`Decision`], [`Answers`], [`Elicited`], [`Dialog`], [`Hook`]: how the host answers. A callback that panics or expires is a no.
//! - [`mcp`]: tools made of functions.
//! - [`SessionStore`]: sessions in a place of your own, such as a database.
//! - [`Error`]: sorted by [`ErrorKind`], with exit code, error output and API status where there are any.
//! - [`transport`]: how an engine is reached, for those who have one of their own.
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

/// What programs rely on: sessions move between threads, and handles and errors are shared by them.
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
