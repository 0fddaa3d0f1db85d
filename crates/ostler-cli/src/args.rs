//! The command line.

use std::path::PathBuf;

use clap::Parser;
use ostler_proto::permission::PermissionMode;

/// An agent that works in this folder.
///
/// Without a prompt it opens a conversation: one prompt per line, Ctrl-C stops the agent, Ctrl-D ends.
/// Without ANTHROPIC_API_KEY it runs on a small offline demo that understands a few plain sentences.
#[derive(Debug, Parser)]
#[command(version, about, long_about)]
pub(crate) struct Args {
    /// What to do; answered once, then the program ends
    pub(crate) prompt: Option<String>,

    /// The model to ask, or `offline-demo`
    #[arg(long, value_name = "NAME", env = "ANTHROPIC_MODEL")]
    pub(crate) model: Option<String>,

    /// How freely tools run: default, acceptEdits, plan, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE", default_value = "default", value_parser = permission_mode)]
    pub(crate) permission_mode: PermissionMode,

    /// The most model calls for one prompt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_turns: Option<u64>,

    /// Work in this folder instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

fn permission_mode(word: &str) -> Result<PermissionMode, String> {
    match PermissionMode::from(word) {
        PermissionMode::Other(_) | PermissionMode::Auto => {
            Err("use default, acceptEdits, plan, dontAsk or bypassPermissions".to_owned())
        }
        mode => Ok(mode),
    }
}
