//! The Claude Agent SDK for Rust.
#![warn(missing_docs)]

mod client;
mod error;
mod handle;
pub mod hook;
pub mod mcp;
mod message;
pub mod options;
pub mod permission;
mod process;
mod query;
mod session;
pub mod transport;

pub use self::client::{Client, Prompt, Turn};
pub use self::error::{Error, ErrorKind};
pub use self::handle::Handle;
pub use self::hook::Hook;
pub use self::message::Message;
pub use self::options::Options;
pub use self::permission::{Answers, Decision, PermissionRequest, QuestionRequest};
pub use self::process::Process;
pub use self::query::{Query, prompt, prompt_as, query};
