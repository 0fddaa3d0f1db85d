//! [`HostMount`]: what of the host comes into a workspace, and where.

use std::path::{Component, Path, PathBuf};

use super::error::{WorkspaceError, WorkspaceSecurityError};

/// Something of the host that is copied into a workspace: a file, or a folder with everything in it.
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
    /// Where it is. A relative path is looked for in the allowed host roots, one after another, and then in this
    /// process's own folder.
    pub host_path: PathBuf,
    /// Where it goes, relative to the workspace; its own name there if `None`.
    pub mount_path: Option<PathBuf>,
    /// Files to take; all if empty. `*.rs` fits in every folder, `/src/*` only in `src` at the top.
    pub include_glob: Vec<String>,
    /// Files to leave out, even if they are included.
    pub exclude_glob: Vec<String>,
    /// The most bytes; no limit if `None`.
    pub max_bytes: Option<u64>,
    /// Whether links are followed. Only inside the allowed host roots, or without any, inside the mount.
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

    /// Where it goes.
    #[must_use]
    pub fn mount_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.mount_path = Some(path.into());
        self
    }

    /// Files to take.
    #[must_use]
    pub fn include_glob<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.include_glob.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Files to leave out.
    #[must_use]
    pub fn exclude_glob<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.exclude_glob.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// The most bytes.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Whether links are followed.
    #[must_use]
    pub fn follow_symlinks(mut self, follow: bool) -> Self {
        self.follow_symlinks = follow;
        self
    }

    /// Where it goes, for something that is really at `resolved`.
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
                Component::ParentDir => return wrong("has a `..` in it"),
                Component::RootDir | Component::Prefix(_) => return wrong("is absolute"),
            }
        }
        if place.as_os_str().as_encoded_bytes().contains(&0) {
            return wrong("has a zero byte in it");
        }
        if plain.as_os_str().is_empty() {
            return wrong("is empty");
        }
        Ok(plain)
    }
}

/// What a mount came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mounted {
    /// Where it really is on the host.
    pub host_path: PathBuf,
    /// Where it is in the workspace.
    pub mount_path: PathBuf,
    /// Files that were copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What was left out though no pattern says so, up to some; `n_skipped` counts all.
    pub skipped: Vec<Skipped>,
    /// How many were left out like that.
    pub n_skipped: u64,
    /// Files by name, up to some, for the model to read.
    pub(super) listed: Vec<(PathBuf, u64)>,
}

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// Its path below the mount.
    pub path: PathBuf,
    /// Why.
    pub reason: SkipReason,
}

/// Why something was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is a link, and links are not followed.
    Link,
    /// It is a link that leads outside.
    LeadsOutside,
    /// It is a link that leads nowhere, or round in circles.
    LeadsNowhere,
    /// It is neither a file nor a folder: a pipe, a socket, a device.
    Special,
    /// It vanished, or became something else, while it was looked at.
    Swapped,
}
