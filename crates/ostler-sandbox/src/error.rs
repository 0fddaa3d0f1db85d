//! Why a sandbox cannot be had.

use std::io;
use std::path::{Path, PathBuf};

/// Precedes the reason that a helper writes to stderr if the sandbox cannot be built.
pub(crate) const COMPLAINT: &str = "ostler sandbox: ";

/// Why a program cannot run in a sandbox. The text says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A program or a part of the kernel is missing on this machine.
    #[error("{0}")]
    Unavailable(String),
    /// A path that must not change is a link, or is reached through one, so that protecting it would protect something else.
    #[error(
        "{} is a symbolic link, so the sandbox cannot protect what it stands for. Replace it by a real file or folder, \
         or remove it",
        .0.display()
    )]
    Link(PathBuf),
    /// A path that a line of text cannot hold.
    #[error(
        "the sandbox cannot use the path {0:?}: it contains a line break or is not valid UTF-8"
    )]
    Path(PathBuf),
    /// A file or folder of the boundary cannot be read or made.
    #[error("the sandbox cannot be built: {}: {error}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl SandboxError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io { path: path.to_owned(), error }
    }
}
