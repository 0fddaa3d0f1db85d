//! The commands that maintain a server's database: `ostler backup`, `ostler restore` and `ostler check`.

use std::path::PathBuf;

/// The folder of a server's data.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Kept {
    /// The folder in which the server stores its event log, tokens and users
    #[arg(long, value_name = "DIR", env = "OSTLER_DATA")]
    pub(crate) data: Option<PathBuf>,
}

/// `ostler backup`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Backup {
    /// The file to write; it must not exist yet
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

/// `ostler restore`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Restore {
    /// The backup file
    pub(crate) file: PathBuf,
    /// Replace the existing sessions; the old database stays in a file next to it
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

/// `ostler check`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Check {
    /// A backup to check instead of the server's database
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) kept: Kept,
}
