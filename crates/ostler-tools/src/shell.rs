//! Where a session's shell stands, and the private folder it keeps its notes in.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use tempfile::TempDir;

/// The shell of a session: each command is a new process, only the working directory lasts.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    cwd: Mutex<Option<PathBuf>>,
    folder: Mutex<Option<TempDir>>,
    n_calls: AtomicU64,
}

/// What one call needs.
pub(crate) struct Call {
    /// Where it starts.
    pub(crate) cwd: PathBuf,
    /// Where the command shall note the directory it ended in.
    pub(crate) cwd_note: PathBuf,
    /// Where its output goes if it gets long.
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
}

impl Shell {
    /// A call that starts where the last one ended, or at `start` if there was none or its directory is gone.
    pub(crate) fn call(&self, start: &Path) -> io::Result<Call> {
        let cwd = lock(&self.cwd).clone().filter(|cwd| cwd.is_dir());
        let mut folder = lock(&self.folder);
        if folder.is_none() {
            let only_the_user = Permissions::from_mode(0o700);
            *folder = Some(
                tempfile::Builder::new().prefix("ostler-").permissions(only_the_user).tempdir()?,
            );
        }
        let folder = folder.as_ref().map_or(Path::new("/nonexistent"), TempDir::path);
        let n = self.n_calls.fetch_add(1, Ordering::Relaxed);
        Ok(Call {
            cwd: cwd.unwrap_or_else(|| start.to_owned()),
            cwd_note: folder.join(format!("cwd-{n}")),
            stdout: folder.join(format!("output-{n}.txt")),
            stderr: folder.join(format!("errors-{n}.txt")),
        })
    }

    /// Where the next call starts, if that is not `start`.
    pub(crate) fn elsewhere(&self, start: &Path) -> Option<PathBuf> {
        let start = start.canonicalize().unwrap_or_else(|_| start.to_owned());
        lock(&self.cwd).clone().filter(|cwd| *cwd != start && cwd.is_dir())
    }

    /// Takes over the directory a command ended in; gives it back if it is another than before.
    pub(crate) fn moved(&self, call: &Call) -> Option<PathBuf> {
        let note = fs::read(&call.cwd_note).ok()?;
        let _ = fs::remove_file(&call.cwd_note);
        let cwd = PathBuf::from(bytes_to_os(note.strip_suffix(b"\n")?));
        let started = call.cwd.canonicalize().unwrap_or_else(|_| call.cwd.clone());
        *lock(&self.cwd) = Some(cwd.clone());
        (cwd != started).then_some(cwd)
    }
}

fn bytes_to_os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
