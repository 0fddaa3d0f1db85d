//! The commands for what a server keeps: `ostler backup`, `ostler restore` and `ostler check`.

use std::path::PathBuf;

/// Where a server keeps things.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Kept {
    /// Where the server keeps its event log, tokens and users
    #[arg(long, value_name = "DIR", env = "OSTLER_DATA")]
    pub(crate) data: Option<PathBuf>,
}

/// A copy to be made.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Backup {
    /// The file to write; it must not exist yet
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

/// A copy to be put back.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Restore {
    /// The backup
    pub(crate) file: PathBuf,
    /// Replace the existing sessions; the old database stays in a file next to it
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

/// A look at everything.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Check {
    /// A backup, instead of what the server keeps
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) kept: Kept,
}
