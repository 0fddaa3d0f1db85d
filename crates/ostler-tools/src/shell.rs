//! The working directory of a session's shell.

use parking_lot::{Mutex, MutexGuard};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use ostler_engine::sandbox::Confinement;
use ostler_engine::tool::ToolCx;
use ostler_files::RealPath;

/// The longest path that a command can record, in bytes: more than Linux and macOS allow.
const LONGEST_NOTE: u64 = 64 * 1024;

/// The shell of a session: each command is a new process, and only the working directory is kept.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    cwd: Mutex<Option<PathBuf>>,
    n_calls: AtomicU64,
}

/// The paths of one call.
pub(crate) struct ShellCall {
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// The file in which the command records its last directory, as the command sees it.
    pub(crate) cwd_note: PathBuf,
    /// The same file as this program sees it.
    own_note: PathBuf,
    /// The file for a long output.
    pub(crate) stdout: PathBuf,
    pub(crate) stderr: PathBuf,
}

impl Shell {
    /// Prepares a call in a folder.
    pub(crate) fn call(
        &self,
        cx: &ToolCx,
        cwd: PathBuf,
        confinement: &Confinement,
    ) -> io::Result<ShellCall> {
        let folder = cx.scratch.folder()?;
        let n = self.n_calls.fetch_add(1, Ordering::Relaxed);
        // Commands in a sandbox cannot write the session's folder: this program writes there, and follows what it finds.
        let (cwd_note, own_note) = match confinement {
            Confinement::None => (folder.join(format!("cwd-{n}")), folder.join(format!("cwd-{n}"))),
            Confinement::Inside { sandbox, .. } => {
                let name = format!(".ostler-cwd-{n}");
                (Path::new("/tmp").join(&name), sandbox.temporary().join(&name))
            }
        };
        Ok(ShellCall {
            cwd,
            cwd_note,
            own_note,
            stdout: folder.join(format!("output-{n}.txt")),
            stderr: folder.join(format!("errors-{n}.txt")),
        })
    }

    /// The folder of the next call, if it is not `start`: the one in which the last call ended, unless it no longer
    /// exists.
    pub(crate) fn elsewhere(&self, start: &Path) -> Option<PathBuf> {
        // Most sessions stay in one folder, and then nothing has to be looked up.
        let cwd = lock(&self.cwd).clone()?;
        let start = start.canonicalize().unwrap_or_else(|_| start.to_owned());
        (cwd != start && cwd.is_dir()).then_some(cwd)
    }

    /// Adopts the directory in which a command ended; returns it if it changed.
    pub(crate) fn moved(&self, call: &ShellCall) -> Option<PathBuf> {
        // The command may have replaced the file with anything: a pipe, a device, an endless file.
        let note = RealPath::resolve_parent(&call.own_note);
        let note = note.and_then(|note| note.read_bytes(LONGEST_NOTE));
        if note.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return None;
        }
        let _ = fs::remove_file(&call.own_note);
        let cwd = PathBuf::from(bytes_to_os(note.ok()?.strip_suffix(b"\n")?));
        let started = call.cwd.canonicalize().unwrap_or_else(|_| call.cwd.clone());
        *lock(&self.cwd) = Some(cwd.clone());
        (cwd != started).then_some(cwd)
    }
}

fn bytes_to_os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
