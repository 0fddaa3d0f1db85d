//! The agent loop: a prompt goes in, the model is asked, tools run, a result comes out.
//!
//! [`session::start`] opens a session; what goes in and out are the frames of `ostler-proto`. The engine knows no
//! concrete tool, no terminal and no server: models come in as [`model::Model`], tools as [`tool::Tool`].
//!
//! To read it, begin with [`turn`] (what is decided, without IO), then `drive` (how it is carried out), then
//! [`session`] (who talks to whom).

mod agents;
mod call;
mod checkpoint;
mod commands;
mod compact;
pub mod context;
mod disk;
mod drive;
mod hooks;
mod host;
mod ids;
pub mod library;
mod limits;
pub mod live;
pub mod mcp;
pub mod model;
#[cfg(feature = "offline")]
pub mod offline;
pub mod permission;
pub mod project_file;
pub mod record;
mod regular;
mod rescue;
mod response;
mod schema;
pub mod scratch;
pub mod session;
pub mod settings;
pub mod store;
mod structured;
pub mod tasks;
pub mod tool;
mod transcript;
pub mod turn;
