//! Decides whether a tool call may run, and reads the settings for that.
//!
//! [`permission`] has the rules and the decision; every decision includes its steps. [`settings`] reads and writes the
//! settings files of user, project and administrator. [`project_file`] opens every file that a project brings, so that
//! none leads out of a project that the user does not trust.

pub mod permission;
pub mod project_file;
pub mod settings;
mod wildcard;
