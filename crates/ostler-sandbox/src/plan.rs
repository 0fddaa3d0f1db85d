//! Which path a sandbox shows in which way, in the order in which they are mounted. Only looks at files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::boundary::{Boundary, UnixSockets};
use crate::error::SandboxError;

/// How a path is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// As it is, and it can be written. The path outside the sandbox.
    Writable(PathBuf),
    /// As it is, and it cannot be written.
    ReadOnly(PathBuf),
    /// As an empty folder that can be written; what is written disappears with the sandbox.
    Private,
    /// As an empty folder.
    EmptyFolder,
    /// As an empty file.
    EmptyFile,
    /// As it is, and it cannot be written, renamed or replaced. The writable folder that it is in.
    Protected(PathBuf),
    /// As it is, and it can be written, but not renamed or replaced. The writable folder that it is in.
    Fixed(PathBuf),
}

impl View {
    /// Of two views of one path the higher one counts.
    fn rank(&self) -> u8 {
        match self {
            Self::Private => 0,
            Self::Writable(_) | Self::Fixed(_) => 1,
            Self::ReadOnly(_) | Self::Protected(_) => 2,
            Self::EmptyFolder | Self::EmptyFile => 3,
        }
    }
}

/// Folders that hold data of other programs and users; a sandbox has its own.
const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// Where the socket of the proxy is inside.
pub(crate) const PROXY: &str = "/run/ostler-proxy";

/// Paths in private folders that programs need.
const NEEDED: [&str; 1] = ["/run/current-system"];

/// The views, parents before children.
///
/// # Errors
/// When a protected path is a link or is reached through one.
pub(crate) fn views(boundary: &Boundary) -> Result<Vec<(PathBuf, View)>, SandboxError> {
    let mut views = Views::default();
    for folder in PRIVATE.map(Path::new).into_iter().filter(|folder| folder.is_dir()) {
        views.add(folder, View::Private);
    }
    for path in NEEDED.map(Path::new).into_iter().filter(|path| path.exists()) {
        views.add(path, View::ReadOnly(path.to_owned()));
    }
    for path in boundary.readable.iter().filter(|path| path.exists()) {
        views.add(path, View::ReadOnly(path.clone()));
    }
    for path in boundary.writable.iter().filter(|path| path.exists()) {
        let is_protected = !boundary.writable_roots().any(|root| root == path);
        let view = if is_protected { View::ReadOnly } else { View::Writable };
        views.add(path, view(path.clone()));
    }
    for mapped in &boundary.mapped {
        views.0.insert(mapped.target.clone(), View::Writable(mapped.source.clone()));
    }
    if let UnixSockets::These(sockets) = &boundary.unix_sockets {
        for socket in sockets.iter().filter(|socket| socket.exists()) {
            views.add(socket, View::Writable(socket.clone()));
        }
    }
    if let Some(socket) = boundary.network.socket() {
        views.0.insert(PROXY.into(), View::Writable(socket.clone()));
    }
    for path in &boundary.hidden {
        // Where links lead, because the file itself has to be hidden. What is missing needs nothing.
        let Ok(path) = path.canonicalize() else { continue };
        views.fix_parents(&path, boundary)?;
        let view = if path.is_dir() { View::EmptyFolder } else { View::EmptyFile };
        views.add(&path, view);
    }
    for protected in &boundary.protected {
        views.protect(&protected.path, boundary)?;
    }
    Ok(views.0.into_iter().collect())
}

/// Sorted by components, so parents come first.
#[derive(Default)]
struct Views(BTreeMap<PathBuf, View>);

impl Views {
    fn add(&mut self, path: &Path, view: View) {
        let is_stricter = self.0.get(path).is_none_or(|before| view.rank() >= before.rank());
        if is_stricter {
            self.0.insert(path.to_owned(), view);
        }
    }

    /// Makes the parents of a path in a writable folder mounts of their own: a mount cannot be renamed, so nothing can be put
    /// in their place, and what they contain keeps its path. Returns the writable folder.
    fn fix_parents(
        &mut self,
        path: &Path,
        boundary: &Boundary,
    ) -> Result<Option<PathBuf>, SandboxError> {
        let Some(root) = boundary.writable_roots().filter(|root| path.starts_with(root)).max()
        else {
            return Ok(None);
        };
        // The writable folder itself may be hidden.
        let parents = path.ancestors().skip(1).take_while(|parent| parent.starts_with(root));
        let between: Vec<&Path> = parents.filter(|parent| parent != root).collect();
        for parent in between.into_iter().rev() {
            refuse_link(parent)?;
            self.0.entry(parent.to_owned()).or_insert_with(|| View::Fixed(root.clone()));
        }
        Ok(Some(root.clone()))
    }

    /// Protects a path.
    fn protect(&mut self, path: &Path, boundary: &Boundary) -> Result<(), SandboxError> {
        // Elsewhere nothing can be written.
        if let Some(root) = self.fix_parents(path, boundary)? {
            refuse_link(path)?;
            self.add(path, View::Protected(root));
        }
        Ok(())
    }
}

fn refuse_link(path: &Path) -> Result<(), SandboxError> {
    let about = fs::symlink_metadata(path).map_err(SandboxError::io(path))?;
    if about.is_symlink() { Err(SandboxError::Link(path.to_owned())) } else { Ok(()) }
}
