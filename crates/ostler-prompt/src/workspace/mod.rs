//! Workspaces: temporary folders with copies for an agent to work on.
//!
//! Only [`Changes::apply`] changes the originals; the program calls it.

mod apply;
mod baseline;
mod changes;
mod copy;
mod describe;
mod error;
mod globs;
mod mount;
mod reaper;
mod source;

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_files::openat::{self, Root};
use tempfile::TempDir;

pub use self::apply::Applied;
use self::baseline::Baseline;
pub use self::changes::{Change, ChangeKind, Changes};
use self::copy::Copier;
pub use self::error::{WorkspaceError, WorkspaceSecurityError};
use self::globs::Globs;
pub use self::mount::{HostMount, Mounted, SkipReason, Skipped};
use self::reaper::Reaper;

/// A new folder with copies of files of the host, for an agent to work in. In a prompt it is also the section that
/// describes the folder to the model. Clones are the same workspace.
///
/// It is removed by [`cleanup`](Self::cleanup), or when the last clone and the last prompt with it are dropped, or when
/// this process ends, even if it is killed.
///
/// ```
/// use ostler_prompt::{HostMount, Workspace};
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::write(folder.path().join("main.rs"), "fn main() {}").unwrap();
/// # let source = folder.path();
///
/// let workspace = Workspace::builder()
///     .mount(HostMount::new(source).mount_path("project/src").exclude_glob(["target"]).max_bytes(1_000_000))
///     .allowed_host_roots([source])
///     .open()?;
/// let copy = workspace.path().join("project/src/main.rs");
/// assert_eq!(std::fs::read_to_string(&copy).unwrap(), "fn main() {}");
/// workspace.cleanup()?;
/// assert!(!copy.exists());
/// # Ok::<(), ostler_prompt::WorkspaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Workspace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    title: String,
    key: String,
    mounts: Vec<Mounted>,
    globs: Vec<Globs>,
    baseline: Baseline,
    /// `None` after the folder was removed.
    folder: Mutex<Option<(TempDir, Option<Reaper>)>>,
}

impl Workspace {
    /// Starts a workspace.
    pub fn builder() -> WorkspaceBuilder {
        WorkspaceBuilder {
            mounts: Vec::new(),
            roots: None,
            parent: None,
            title: "Workspace".to_owned(),
            key: "workspace".to_owned(),
        }
    }

    /// The path of the folder, which is the working directory of the agent.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The results of its mounts.
    pub fn mounts(&self) -> &[Mounted] {
        &self.0.mounts
    }

    /// Its description for the model.
    pub fn describe(&self) -> String {
        describe::mounts(&self.0.mounts)
    }

    /// The changes since the workspace was created.
    ///
    /// # Errors
    /// If the workspace cannot be read, or was cleaned up.
    pub fn changes(&self) -> Result<Changes, WorkspaceError> {
        if self.lock().is_none() {
            return Err(WorkspaceError::Gone { path: self.0.path.clone() });
        }
        changes::find(self)
    }

    /// Removes the workspace with all files. Further calls do nothing.
    ///
    /// # Errors
    /// If a file or folder cannot be removed.
    pub fn cleanup(&self) -> Result<(), WorkspaceError> {
        self.0.cleanup()
    }

    /// Its title in a prompt.
    pub fn title(&self) -> &str {
        &self.0.title
    }

    /// Its key in a prompt.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<(TempDir, Option<Reaper>)>> {
        self.0.folder.lock()
    }
}

impl Inner {
    fn cleanup(&self) -> Result<(), WorkspaceError> {
        let taken = self.folder.lock().take();
        let Some((folder, reaper)) = taken else { return Ok(()) };
        let path = folder.keep();
        let removed = match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // Agents may have made folders inaccessible.
                unlock(&path, 0);
                std::fs::remove_dir_all(&path)
            }
            other => other,
        };
        // The shell removes what is left, if anything.
        drop(reaper);
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(WorkspaceError::io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Err(error) = self.cleanup() {
            tracing::warn!("{error}");
        }
    }
}

/// Makes folders accessible again.
fn unlock(folder: &Path, depth: usize) {
    let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|_| depth < 1000) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path(), depth + 1);
        }
    }
}

/// Builds a [`Workspace`].
#[derive(Clone, Debug)]
#[must_use = "`open` creates the workspace"]
pub struct WorkspaceBuilder {
    mounts: Vec<HostMount>,
    roots: Option<Vec<PathBuf>>,
    parent: Option<PathBuf>,
    title: String,
    key: String,
}

impl WorkspaceBuilder {
    /// Adds a mount.
    pub fn mount(mut self, mount: HostMount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Allows only mounts and targets of links whose real path is below one of these roots. An empty list allows
    /// nothing. Without this call, every path can be mounted, and links may lead only into their mount.
    pub fn allowed_host_roots<P: Into<PathBuf>>(
        mut self,
        roots: impl IntoIterator<Item = P>,
    ) -> Self {
        self.roots.get_or_insert_default().extend(roots.into_iter().map(Into::into));
        self
    }

    /// Sets the folder in which the workspace is created; the system's temporary folder by default.
    pub fn temp_root(mut self, folder: impl Into<PathBuf>) -> Self {
        self.parent = Some(folder.into());
        self
    }

    /// Sets another title and key than `Workspace` and `workspace`, for prompts with several workspaces.
    pub fn section(mut self, title: impl Into<String>, key: impl Into<String>) -> Self {
        (self.title, self.key) = (title.into(), key.into());
        self
    }

    /// Creates the folder and copies everything into it. If that fails, nothing is left behind.
    ///
    /// # Errors
    /// If a path is missing, must not be mounted, exceeds a limit or cannot be copied.
    pub fn open(self) -> Result<Workspace, WorkspaceError> {
        let roots = source::roots(self.roots.as_deref())?;
        let parent = self.parent.unwrap_or_else(std::env::temp_dir);
        let making = |error| WorkspaceError::io("make a workspace in", &parent, error);
        let folder = tempfile::Builder::new()
            .prefix("ostler-workspace-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(making)?;
        let path = folder.path().canonicalize().map_err(making)?;
        let reaper = Reaper::start(&path);
        let mut mounts = Vec::new();
        let mut patterns = Vec::new();
        let mut baseline = Baseline::new();
        for (number, mount) in self.mounts.iter().enumerate() {
            let globs = Globs::new(&mount.include_glob, &mount.exclude_glob)?;
            mounts.push(copy(mount, number, &globs, roots.as_deref(), &path, &mut baseline)?);
            patterns.push(globs);
        }
        Ok(Workspace(Arc::new(Inner {
            path,
            title: self.title,
            key: self.key,
            mounts,
            globs: patterns,
            baseline,
            folder: Mutex::new(Some((folder, reaper))),
        })))
    }
}

/// Copies one mount.
fn copy(
    mount: &HostMount,
    number: usize,
    globs: &Globs,
    roots: Option<&[Root]>,
    workspace: &Path,
    baseline: &mut Baseline,
) -> Result<Mounted, WorkspaceError> {
    let real = source::find(&mount.host_path, roots)?;
    let place = mount.place(&real)?;
    let own = source::own_boundary(&real)?;
    let (root, boundary) = source::boundary(roots, &own, &real)?;
    let creating = |error: io::Error| WorkspaceError::io("create", &place, error);
    let into = Root::open(workspace).and_then(|root| root.folder()).map_err(creating)?;
    let mut parents = place.parent().into_iter().flat_map(Path::iter);
    let into = parents
        .try_fold(into, |folder, name: &OsStr| openat::make_folder(&folder, name))
        .map_err(creating)?;
    let mut copier = Copier::new(mount, globs, boundary, (real, place.clone()), baseline, number);
    copier.run(root, &into)?;
    Ok(copier.mounted)
}
