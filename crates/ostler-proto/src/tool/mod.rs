//! The built-in tools: their inputs, and their outputs in addition to the text for the model.
//!
//! [`ToolInput::parse`] and [`ToolOutput::parse`] pick the type by the tool's name. Inputs are those of a `tool_use`
//! block, outputs those of a user frame's `tool_use_result` and of a hook's `tool_response`. Tools of MCP servers and
//! tools this version does not know stay JSON, and so does `StructuredOutput`, whose input is what the host asked for.
//!
//! Some outputs have no type and are JSON too: `Artifact` (a dozen shapes without a tag), and `Skill`
//! and `TaskOutput`, which are not published.

mod agent;
mod artifact;
mod ask;
mod edit;
mod error;
mod mcp;
mod mode;
mod notebook;
mod notify;
mod projects;
mod propose;
mod read;
mod schedule;
mod search;
mod shell;
mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod web;
mod workflow;

pub use self::agent::*;
pub use self::artifact::*;
pub use self::ask::*;
pub use self::edit::*;
pub use self::error::{Side, ToolShapeError};
pub use self::mcp::*;
pub use self::mode::*;
pub use self::notebook::*;
pub use self::notify::*;
pub use self::projects::*;
pub use self::propose::*;
pub use self::read::*;
pub use self::schedule::*;
pub use self::search::*;
pub use self::shell::*;
pub use self::table::{ToolInput, ToolOutput};
pub use self::tasks::*;
pub use self::web::*;
pub use self::workflow::*;
