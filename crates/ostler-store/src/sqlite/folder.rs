//! The folder of a store: locked by one process, on a local disk.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Error;

pub(super) const DATABASE: &str = "ostler.db";
const LOCK: &str = "lock";

/// How long to retry a locked folder before reporting another server.
const PATIENCE: Duration = Duration::from_secs(1);

/// A folder that no other store uses as long as this value lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked until the file is closed, also if the process is killed.
    lock: File,
}

impl Folder {
    /// Creates the folder if it is missing, locks it, and creates the database file if it is missing.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |why: String| Error::Open { place: path.display().to_string(), why };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| failed(format!("creating the folder: {error}")))?;
        restrict(path, 0o700)
            .map_err(|error| failed(format!("restricting its permissions: {error}")))?;
        if let Some(name) = network_filesystem(path) {
            return Err(failed(format!(
                "it is on a network file system ({name}), where a crash or a second machine can destroy it; use a local disk"
            )));
        }
        let lock = lock(&path.join(LOCK)).map_err(failed)?;
        make_private(&path.join(DATABASE))
            .and_then(|()| sync_folder(path))
            .map_err(|error| failed(format!("creating {DATABASE}: {error}")))?;
        Ok(Self { path: path.to_owned(), lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is being started briefly inherits every open file, also this
        // one.
        _ = self.lock.unlock();
    }
}

/// Creates an empty file that only its owner can read. Restricts an existing file in the same way.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    private().write(true).create(true).truncate(false).open(path)?.sync_all()?;
    restrict(path, 0o600)
}

/// A new file in a folder survives a power cut only if the folder itself was synced.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o777 & !mode == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn lock(path: &Path) -> Result<File, String> {
    let mut file = private()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| format!("opening {LOCK}: {error}"))?;
    match lock_soon(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the error message; the lock does not depend on it.
            _ = file.take(32).read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => String::new(),
                id => format!(" (process {id})"),
            };
            return Err(format!(
                "another server{holder} uses it; stop that server, or use another folder"
            ));
        }
        Err(TryLockError::Error(error)) => return Err(format!("locking {LOCK}: {error}")),
    }
    let emptied = file.set_len(0).and_then(|()| file.rewind());
    emptied
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(|error| format!("writing {LOCK}: {error}"))?;
    Ok(file)
}

/// Locks the file, with retries: if a server was killed while it started a process, that process has the file open
/// until it executes its own program.
fn lock_soon(file: &File) -> Result<(), TryLockError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            locked => return locked,
        }
    }
}

/// The name of the file system, if it is a network file system.
#[cfg(target_os = "linux")]
fn network_filesystem(path: &Path) -> Option<&'static str> {
    /// Magic numbers of `statfs(2)`.
    const KNOWN: &[(u64, &str)] = &[
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x0102_1997, "9P"),
        (0x5346_414f, "AFS"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
        (0x7461_636f, "OCFS2"),
        (0x0116_1970, "GFS2"),
    ];
    // Unsigned, and as wide as the kernel's field on the narrowest machine.
    let kind = rustix::fs::statfs(path).ok()?.f_type as u64 & 0xffff_ffff;
    KNOWN.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
fn network_filesystem(_: &Path) -> Option<&'static str> {
    None
}
