//! What can be wrong with a workspace.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no workspace, or why something could not be done with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// What was to be mounted is not there.
    #[error("there is nothing to mount at {}", .path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Something that must not be.
    #[error(transparent)]
    Security(#[from] WorkspaceSecurityError),
    /// A mount has more bytes than it may have.
    #[error("{}: the mount has more than {limit} bytes; raise max_bytes, or exclude something (it got to {})", .mount.display(), .at.display())]
    TooLarge {
        /// The mount.
        mount: PathBuf,
        /// Its limit.
        limit: u64,
        /// The file that was one too many.
        at: PathBuf,
    },
    /// A mount has more files than any may have, or its folders are too deep.
    #[error("{}: {what}; exclude something", .mount.display())]
    TooMuch {
        /// The mount.
        mount: PathBuf,
        /// What there is too much of.
        what: String,
    },
    /// Two mounts would put a file into one place.
    #[error("two mounts have a file for {} in the workspace; give one of them another mount_path", .path.display())]
    Conflict {
        /// The place.
        path: PathBuf,
    },
    /// What was to be mounted is neither a file nor a folder.
    #[error("{} is neither a file nor a folder", .path.display())]
    NotAFile {
        /// What it is.
        path: PathBuf,
    },
    /// A pattern is malformed.
    #[error("the pattern `{pattern}` is malformed: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something could not be read or written.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The workspace was cleaned up already.
    #[error("the workspace {} was cleaned up already", .path.display())]
    Gone {
        /// Where it was.
        path: PathBuf,
    },
    /// Originals changed since they were mounted, so that nothing was applied.
    #[error("nothing was applied: since the mount, somebody else has changed {}", list(.paths))]
    Changed {
        /// The originals.
        paths: Vec<PathBuf>,
    },
}

/// Something about a workspace that must not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceSecurityError {
    /// What was to be mounted is outside of all allowed roots.
    #[error("{} is {}, which is outside of all allowed host roots", .path.display(), .resolved.display())]
    OutsideRoots {
        /// What was to be mounted.
        path: PathBuf,
        /// What that is.
        resolved: PathBuf,
    },
    /// A place in the workspace that is not in it.
    #[error("the mount_path {} {reason}; it is relative, and stays inside the workspace", .path.display())]
    MountPath {
        /// The place.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Somebody put something else in its place meanwhile.
    #[error("{} became something else while it was looked at", .path.display())]
    Swapped {
        /// Which.
        path: PathBuf,
    },
}

impl WorkspaceError {
    pub(super) fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }

    /// Whether it is about something that must not be.
    pub fn is_security(&self) -> bool {
        matches!(self, Self::Security(_))
    }
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().take(10).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
