//! The part of the command line that only programs use.

use std::path::PathBuf;

use super::{FRAMES, PROGRAMS};

/// What the official SDKs say beside the rest.
#[derive(Debug, clap::Args)]
pub(crate) struct Wire {
    /// Tell the model what is in this file instead of the usual system prompt
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Send prompts back as they are taken up (stream-json only)
    #[arg(long, hide = true, group = FRAMES)]
    replay_user_messages: bool,

    /// Send what is written to the session's file, too (stream-json only)
    #[arg(long, hide = true, group = FRAMES)]
    session_mirror: bool,

    /// The API's own budget for a task, in tokens
    #[arg(long, value_name = "N", hide = true)]
    task_budget: Option<u64>,

    /// Settings that only make things stricter: JSON
    #[arg(long, value_name = "JSON", hide = true)]
    managed_settings: Option<String>,

    /// Where the project's settings are, if not in the working directory
    #[arg(long, value_name = "DIR", hide = true)]
    project_config_root: Option<String>,

    /// Tell on standard error which frames come and go; a filter is accepted for compatibility and not applied
    #[arg(long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "", hide = true, group = PROGRAMS)]
    pub(crate) debug: Option<String>,

    /// Write into this file which frames come and go
    #[arg(long, value_name = "FILE", hide = true, group = PROGRAMS)]
    pub(crate) debug_file: Option<PathBuf>,

    /// Accepted for compatibility: what the host introduces itself with always holds for the first turn
    #[arg(long, hide = true)]
    await_initialize: bool,

    /// Wait as a spare until a host claims this process (stream-json only)
    #[arg(long, hide = true, group = FRAMES)]
    pub(crate) await_claim: bool,
}
