//! The part of the command line that only programs use.

use std::path::PathBuf;

use super::{FRAMES, PROGRAMS};

/// Additional flags that the official SDKs use.
#[derive(Debug, clap::Args)]
pub(crate) struct Wire {
    /// Replace the usual system prompt with the content of this file
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Send each prompt back when its turn begins (stream-json only)
    #[arg(long, hide = true, group = FRAMES)]
    replay_user_messages: bool,

    /// Also send what is written to the session's file (stream-json only)
    #[arg(long, hide = true, group = FRAMES)]
    session_mirror: bool,

    /// The API's task budget, in tokens
    #[arg(long, value_name = "N", hide = true)]
    task_budget: Option<u64>,

    /// Settings that can only add restrictions: JSON
    #[arg(long, value_name = "JSON", hide = true)]
    managed_settings: Option<String>,

    /// The folder with the project's settings, if it is not the working directory
    #[arg(long, value_name = "DIR", hide = true)]
    project_config_root: Option<String>,

    /// Log the kinds of frames in both directions on standard error; a filter is accepted for compatibility and ignored
    #[arg(long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "", hide = true, group = PROGRAMS)]
    pub(crate) debug: Option<String>,

    /// Log the kinds of the frames in both directions in this file
    #[arg(long, value_name = "FILE", hide = true, group = PROGRAMS)]
    pub(crate) debug_file: Option<PathBuf>,

    /// Accepted for compatibility: the host's initialize request always applies to the first turn
    #[arg(long, hide = true)]
    await_initialize: bool,

    /// Wait as a spare until a host claims this process (stream-json only)
    #[arg(long, hide = true, group = FRAMES)]
    pub(crate) await_claim: bool,
}
