//! The agent loop: a prompt goes in, the model is asked, tools run, a result comes out.
//!
//! [`session::start`] opens a session; what goes in and out are the frames of `ostler-proto`. The engine knows no
//! concrete tool, no terminal and no server: models come in as [`model::Model`], tools as [`tool::Tool`].
//!
//! To read it, begin with [`turn`] (what is decided, without IO), then `drive` (how it is carried out), then
//! [`session`] (who talks to whom).

mod agents;
mod ask_model;
mod call;
mod commands;
mod compact;
pub mod context;
mod disk;
mod drive;
mod file_stamp;
mod hook_report;
mod hooks;
mod host_calls;
mod host_question;
pub mod interpolate;
pub mod library;
mod limits;
pub mod mcp;
mod outbox;
mod permissions;
mod rescue;
mod response;
pub mod sandbox;
mod schema;
pub mod scratch;
pub mod session;
mod session_records;
pub mod settings_watcher;
mod structured;
pub mod tasks;
pub mod tool;
pub mod turn;

#[cfg(feature = "offline")]
pub use ostler_model::offline;
pub use ostler_model::{self as model, record};
pub use ostler_policy::{permission, project_file, settings};
pub use ostler_transcript as store;
use ostler_transcript::{checkpoint, ids};
