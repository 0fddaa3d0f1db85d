//! Applies changes of a workspace to the originals.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ostler_files::openat::{self, Root};
use rustix::fs::{AtFlags, Mode, OFlags};
use sha2::{Digest as _, Sha256};

use super::changes::{Change, ChangeKind, Changes, read};
use super::error::WorkspaceError;

/// What was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// Originals that were written, created or removed.
    pub applied: Vec<PathBuf>,
    /// Paths in the workspace without an original, which were left out.
    pub left_out: Vec<PathBuf>,
}

impl Changes {
    /// Applies all changes to the originals. If one of the originals was changed since the mount, nothing is applied.
    /// Each file is replaced atomically; if one fails, those before it stay applied.
    ///
    /// # Errors
    /// If originals have changed, or a file cannot be written.
    pub fn apply(&self) -> Result<Applied, WorkspaceError> {
        self.apply_if(|_| true)
    }

    /// Applies the changes that a function selects.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_if(
        &self,
        mut wanted: impl FnMut(&Change) -> bool,
    ) -> Result<Applied, WorkspaceError> {
        let wanted: Vec<&Change> = self.changes.iter().filter(|change| wanted(change)).collect();
        let mut changed = Vec::new();
        let mut steps = Vec::new();
        let mut applied = Applied::default();
        for change in wanted {
            let Some(host_path) = change.host_path.clone() else {
                applied.left_out.push(change.path.clone());
                continue;
            };
            // The root of a mounted file is its folder.
            let mounted = change.mount.and_then(|mount| self.workspace.mounts().get(mount));
            let top = mounted.map(|mounted| mounted.host_path.as_path()).unwrap_or(&host_path);
            let top = if *top == *host_path { top.parent().unwrap_or(top) } else { top }.to_owned();
            match is_as_mounted(&top, &host_path, change.before) {
                Ok(true) => steps.push((change, top, host_path)),
                Ok(false) => changed.push(host_path),
                Err(error) => return Err(WorkspaceError::io("look at", &host_path, error)),
            }
        }
        if !changed.is_empty() {
            return Err(WorkspaceError::Changed { paths: changed });
        }
        for (change, top, host_path) in steps {
            let done = self.step(change, &top, &host_path);
            done.map_err(|error| WorkspaceError::io("apply a change to", &host_path, error))?;
            applied.applied.push(host_path);
        }
        Ok(applied)
    }

    fn step(&self, change: &Change, top: &Path, host_path: &Path) -> io::Result<()> {
        let below = below(top, host_path)?;
        if change.kind == ChangeKind::Removed {
            let (parent, name) = Root::open(top)?.parent(below)?;
            return Ok(rustix::fs::unlinkat(parent, name.unwrap_or_default(), AtFlags::empty())?);
        }
        let bytes = read(self.workspace.path(), &change.path, u64::MAX)?.unwrap_or_default();
        // Only the listed contents are applied, which the caller could inspect.
        if change.after != Some(Sha256::digest(&bytes).into()) {
            return Err(io::Error::other(
                "it was changed in the workspace after these changes were listed",
            ));
        }
        let (parent, name) = make_parent(&Root::open(top)?, below)?;
        replace(&parent, &name, &bytes, change.mode)
    }
}

fn below<'a>(top: &Path, host_path: &'a Path) -> io::Result<&'a Path> {
    host_path.strip_prefix(top).map_err(|_| io::Error::other("it is outside of its mount"))
}

/// Whether an original has not changed since the mount: it has the same bytes, or still does not exist.
fn is_as_mounted(top: &Path, host_path: &Path, before: Option<[u8; 32]>) -> io::Result<bool> {
    let found = match read(top, below(top, host_path)?, u64::MAX) {
        Ok(bytes) => bytes.map(|bytes| Sha256::digest(&bytes).into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // It is now a link, or another kind of entry that is not a file.
        Err(error) if openat::is_swapped(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(found == before)
}

/// Opens the folder of a file and creates it if it is missing.
fn make_parent(root: &Root, below: &Path) -> io::Result<(OwnedFd, OsString)> {
    let name = below.file_name().unwrap_or_default().to_owned();
    let mut folder = root.folder()?;
    for part in below.parent().into_iter().flat_map(Path::iter) {
        folder = openat::make_folder(&folder, part)?;
    }
    Ok((folder, name))
}

/// Replaces a file atomically.
fn replace(folder: &OwnedFd, name: &OsStr, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut partial = OsString::from(".");
    partial.push(name);
    partial.push(format!(".{}.partial", uuid::Uuid::new_v4().simple()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &partial, flags, Mode::from_raw_mode(0o600))?;
    // An original keeps its mode, except for the executable bit.
    let new_mode =
        openat::stat(folder, name).map_or(mode, |stat| (stat.st_mode & 0o666) | (mode & 0o111));
    let written = rustix::fs::fchmod(&file, Mode::from_raw_mode(new_mode))
        .map_err(io::Error::from)
        .and_then(|()| File::from(file).write_all(bytes))
        .and_then(|()| Ok(rustix::fs::renameat(folder, &partial, folder, name)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(folder, &partial, AtFlags::empty());
    }
    written
}
