//! Errors of workspaces.

use std::io;
use std::path::{Path, PathBuf};

/// Why a workspace could not be created or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The mounted path does not exist.
    #[error("cannot mount {}: it does not exist", .path.display())]
    #[non_exhaustive]
    Missing {
        /// The path that was looked up.
        path: PathBuf,
    },
    /// A violation of the security rules.
    #[error(transparent)]
    Security(#[from] WorkspaceSecurityError),
    /// A mount exceeds its size limit.
    #[error("{}: the mount has more than {limit} bytes; raise max_bytes, or exclude files (exceeded at {})", .mount.display(), .at.display())]
    #[non_exhaustive]
    TooLarge {
        /// The mount.
        mount: PathBuf,
        /// Its limit.
        limit: u64,
        /// The file that exceeded it.
        at: PathBuf,
    },
    /// A mount has too many entries, or its folders are too deep.
    #[error("{}: {what}; exclude files or folders", .mount.display())]
    #[non_exhaustive]
    TooMuch {
        /// The mount.
        mount: PathBuf,
        /// The limit that was exceeded.
        what: String,
    },
    /// Two mounts have a file with the same path in the workspace.
    #[error("two mounts have a file for {} in the workspace; give one of them another mount_path", .path.display())]
    #[non_exhaustive]
    Conflict {
        /// The path.
        path: PathBuf,
    },
    /// The mounted path is neither a file nor a folder.
    #[error("{} is neither a file nor a folder", .path.display())]
    #[non_exhaustive]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A pattern is malformed.
    #[error("the pattern `{pattern}` is malformed: {reason}")]
    #[non_exhaustive]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why it is malformed.
        reason: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {doing} {}: {source}", .path.display())]
    #[non_exhaustive]
    Io {
        /// The operation, such as `read`.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The workspace was cleaned up already.
    #[error("the workspace {} was cleaned up already", .path.display())]
    #[non_exhaustive]
    Gone {
        /// The path of the removed workspace.
        path: PathBuf,
    },
    /// Originals were changed since the mount, so nothing was applied.
    #[error("nothing was applied, because these originals were changed since the mount: {}", list(.paths))]
    #[non_exhaustive]
    Changed {
        /// The originals.
        paths: Vec<PathBuf>,
    },
}

/// A violation of the security rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceSecurityError {
    /// The mounted path is outside all allowed roots.
    #[error("{} is {}, which is outside all allowed host roots", .path.display(), .resolved.display())]
    #[non_exhaustive]
    OutsideRoots {
        /// The given path.
        path: PathBuf,
        /// Its real path.
        resolved: PathBuf,
    },
    /// A mount path is not inside the workspace.
    #[error("the mount_path {} {reason}; use a relative path inside the workspace", .path.display())]
    #[non_exhaustive]
    MountPath {
        /// The mount path.
        path: PathBuf,
        /// Why it is not inside, such as `is absolute`.
        reason: &'static str,
    },
    /// A path was replaced while it was read.
    #[error("{} was replaced while it was read", .path.display())]
    #[non_exhaustive]
    Swapped {
        /// The path.
        path: PathBuf,
    },
}

impl WorkspaceError {
    pub(super) fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }

    /// Whether it is a violation of the security rules.
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
