//! [`HostMount`]: files of the host, and their path in a workspace.

use std::path::{Component, Path, PathBuf};

use super::error::{WorkspaceError, WorkspaceSecurityError};

/// A file of the host, or a folder with everything in it, to be copied into a workspace.
///
/// ```
/// use ostler_prompt::HostMount;
///
/// let mount = HostMount::new("src")
///     .mount_path("project/src")
///     .exclude_glob(["*.pyc", "__pycache__/*"])
///     .max_bytes(1_000_000);
/// assert!(!mount.follow_symlinks);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMount {
    /// Its path on the host. A relative path is looked up in the allowed host roots, in order, and then in this
    /// process's working directory.
    pub host_path: PathBuf,
    /// Its path in the workspace; its own name if `None`.
    pub mount_path: Option<PathBuf>,
    /// Files to copy; all if empty. `*.rs` matches in every folder, `/src/*` only in `src` at the top.
    pub include_glob: Vec<String>,
    /// Files to leave out, even if they are included.
    pub exclude_glob: Vec<String>,
    /// The size limit in bytes; `None` for no limit.
    pub max_bytes: Option<u64>,
    /// Whether links are followed. They may lead only into the allowed host roots or, if there are none, into the
    /// mount.
    pub follow_symlinks: bool,
}

impl HostMount {
    /// Everything at this path, under its own name, without limits, and without following links.
    pub fn new(host_path: impl Into<PathBuf>) -> Self {
        Self {
            host_path: host_path.into(),
            mount_path: None,
            include_glob: Vec::new(),
            exclude_glob: Vec::new(),
            max_bytes: None,
            follow_symlinks: false,
        }
    }

    /// Sets its path in the workspace.
    #[must_use]
    pub fn mount_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.mount_path = Some(path.into());
        self
    }

    /// Sets the files to copy.
    #[must_use]
    pub fn include_glob<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.include_glob.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Sets the files to leave out.
    #[must_use]
    pub fn exclude_glob<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.exclude_glob.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Sets the size limit in bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Sets whether links are followed.
    #[must_use]
    pub fn follow_symlinks(mut self, follow: bool) -> Self {
        self.follow_symlinks = follow;
        self
    }

    /// The path in the workspace for a mount whose real path is `resolved`.
    pub(super) fn place(&self, resolved: &Path) -> Result<PathBuf, WorkspaceError> {
        let given = self.mount_path.clone();
        let own = || self.host_path.file_name().or_else(|| resolved.file_name()).map(PathBuf::from);
        let place = given.or_else(own).unwrap_or_default();
        let wrong =
            |reason| Err(WorkspaceSecurityError::MountPath { path: place.clone(), reason }.into());
        let mut plain = PathBuf::new();
        for component in place.components() {
            match component {
                Component::Normal(name) => plain.push(name),
                Component::CurDir => {}
                Component::ParentDir => return wrong("contains `..`"),
                Component::RootDir | Component::Prefix(_) => return wrong("is absolute"),
            }
        }
        if place.as_os_str().as_encoded_bytes().contains(&0) {
            return wrong("contains a zero byte");
        }
        if plain.as_os_str().is_empty() {
            return wrong("is empty");
        }
        Ok(plain)
    }
}

/// The result of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mounted {
    /// Its real path on the host.
    pub host_path: PathBuf,
    /// Its path in the workspace.
    pub mount_path: PathBuf,
    /// How many files were copied.
    pub files: u64,
    /// How many bytes were copied.
    pub bytes: u64,
    /// Entries that were left out, but not because of a pattern; up to a limit.
    pub skipped: Vec<Skipped>,
    /// The number of all such entries.
    pub n_skipped: u64,
    /// File names up to a limit, for the model.
    pub(super) listed: Vec<(PathBuf, u64)>,
}

/// An entry that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Its path below the mount.
    pub path: PathBuf,
    /// Why it was left out.
    pub reason: SkipReason,
}

/// Why an entry was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is a link, and links are not followed.
    Link,
    /// It is a link to a path outside the allowed roots or the mount.
    LeadsOutside,
    /// It is a dangling link, or a loop of links.
    LeadsNowhere,
    /// It is neither a file nor a folder: a pipe, a socket, a device.
    Special,
    /// It disappeared or was replaced while it was read.
    Swapped,
}
