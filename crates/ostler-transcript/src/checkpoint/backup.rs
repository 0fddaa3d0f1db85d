//! Backups: copies of files, each under a name made of the file's path and a number.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_files::RealPath;
use ostler_proto::build;
use ostler_proto::transcript::FileBackup;
use sha2::{Digest as _, Sha256};

/// The folder of a session's backups, made when it is first needed.
#[derive(Debug)]
pub(super) struct Backups {
    /// Resolved when the session starts, because it may be in a folder in which commands can write. `None` if it leads
    /// nowhere.
    folder: Option<RealPath>,
    /// The stamps of files when they were last found equal to their backups, by the name of the backup.
    compared: Mutex<HashMap<String, FileStamp>>,
}

/// The metadata of a file. Programs can set the time of the last change of its data, but not that of its data or
/// properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The coarsest resolution of a disk's times: two changes within it may have the same time.
const TICK_SECONDS: i64 = 2;

impl FileStamp {
    fn of(found: &fs::Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            len: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Whether every later change will be visible: no past change can have the same time as a future one.
    fn is_settled(&self, now: i64) -> bool {
        self.changed.0.max(self.modified.0) + TICK_SECONDS < now
    }
}

impl Backups {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder: RealPath::resolve(&folder).ok(), compared: Mutex::default() }
    }

    /// Backs up a file as it is now; a missing file is recorded as missing. `real` is the path by which it is opened.
    pub(super) fn make(
        &self,
        file: &Path,
        real: &RealPath,
        version: u64,
    ) -> io::Result<FileBackup> {
        let name = stamp(real)?.map(|_| self.copy(file, real, version)).transpose()?;
        Ok(build!(FileBackup {
            backup_file_name: name,
            version,
            backup_time: super::now(),
            real_parent_dir: super::parent_of(real),
        }))
    }

    /// The backup of a file as it is now: the last one, if nothing has changed since.
    pub(super) fn renew(
        &self,
        file: &Path,
        real: &RealPath,
        last: &FileBackup,
    ) -> io::Result<FileBackup> {
        let is_same = match (&last.backup_file_name, stamp(real)?) {
            (Some(name), Some(stamp)) => self.is_as(name, real, stamp)?,
            (name, found) => name.is_some() == found.is_some(),
        };
        match is_same {
            true => Ok(last.clone()),
            false => self.make(file, real, last.version + 1),
        }
    }

    /// Whether a file equals its backup. The file is read only if its metadata does not tell: every prompt asks this
    /// about every file that was ever changed.
    fn is_as(&self, name: &str, file: &RealPath, stamp: FileStamp) -> io::Result<bool> {
        if self.compared().get(name) == Some(&stamp) {
            return Ok(true);
        }
        // Before the comparison: a change during it must be visible next time.
        let now = jiff::Timestamp::now().as_second();
        let is_same = have_same_content(&self.path(name)?, file)?;
        match is_same && stamp.is_settled(now) {
            true => _ = self.compared().insert(name.to_owned(), stamp),
            false => _ = self.compared().remove(name),
        }
        Ok(is_same)
    }

    fn compared(&self) -> MutexGuard<'_, HashMap<String, FileStamp>> {
        self.compared.lock()
    }

    /// The content of a backup; `None` for a file that did not exist.
    pub(super) fn read(&self, backup: &FileBackup) -> io::Result<Option<Vec<u8>>> {
        backup
            .backup_file_name
            .as_deref()
            .map(|name| self.path(name)?.read_bytes(u64::MAX))
            .transpose()
    }

    /// Copies a backup into another folder, with its permissions.
    pub(super) fn copy_to(&self, other: &Self, backup: &FileBackup) -> io::Result<()> {
        let Some(name) = backup.backup_file_name.as_deref() else { return Ok(()) };
        let to = other.path(name)?;
        if to.metadata().is_ok() {
            return Ok(());
        }
        other.folder()?.create_folders(0o700)?;
        copy(self.path(name)?.open()?, &to)
    }

    /// The permissions that the file had.
    pub(super) fn permissions(&self, backup: &FileBackup) -> io::Result<Option<fs::Permissions>> {
        let name = backup.backup_file_name.as_deref();
        name.map(|name| Ok(self.path(name)?.metadata()?.permissions())).transpose()
    }

    fn folder(&self) -> io::Result<&RealPath> {
        self.folder.as_ref().ok_or_else(|| io::Error::other("the folder of backups leads nowhere"))
    }

    fn copy(&self, file: &Path, real: &RealPath, version: u64) -> io::Result<String> {
        let name = format!("{}@v{version}", path_hash(file));
        self.folder()?.create_folders(0o700)?;
        copy(real.open()?, &self.path(&name)?)?;
        Ok(name)
    }

    /// The path of a backup. Names also come from session files, and must not lead out of the folder.
    fn path(&self, name: &str) -> io::Result<RealPath> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '@';
        match !name.is_empty() && name.chars().all(is_plain) {
            true => Ok(self.folder()?.join(name.as_ref())),
            false => Err(io::Error::other(format!("{name} is not the name of a backup"))),
        }
    }
}

/// Copies a file with its permissions. An incomplete copy must not be taken for a backup, and an old backup must not be
/// half overwritten.
fn copy(mut from: File, to: &RealPath) -> io::Result<()> {
    let permissions = from.metadata()?.permissions();
    to.replace_with(0o600, |to| {
        to.set_permissions(permissions)?;
        io::copy(&mut from, to).map(drop)
    })
}

/// The metadata of a regular file; `None` if it is missing.
fn stamp(real: &RealPath) -> io::Result<Option<FileStamp>> {
    match real.metadata() {
        Ok(found) if found.is_file() => Ok(Some(FileStamp::of(&found))),
        Ok(_) => Err(io::Error::other("it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether two files have the same content. Compared chunk by chunk: every prompt compares every file that was ever
/// changed, and some are large.
fn have_same_content(one: &RealPath, other: &RealPath) -> io::Result<bool> {
    let (one, other) = (one.open()?, other.open()?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let n_bytes = left.len().min(right.len());
        if left[..n_bytes] != right[..n_bytes] {
            return Ok(false);
        }
        if n_bytes == 0 {
            return Ok(left.len() == right.len());
        }
        one.consume(n_bytes);
        other.consume(n_bytes);
    }
}

/// The vendor's name for a path.
fn path_hash(file: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    format!("{:.16x}", Sha256::digest(file.as_os_str().as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// A file and its equal backup.
    fn backed_up() -> (tempfile::TempDir, PathBuf, Backups, FileBackup) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        fs::write(&file, "one").unwrap();
        let backups = Backups::new(folder.path().join("backups"));
        let backup = backups.make(&file, &RealPath::resolve(&file).unwrap(), 1).unwrap();
        (folder, file, backups, backup)
    }

    fn renew(backups: &Backups, file: &Path, last: &FileBackup) -> FileBackup {
        backups.renew(file, &RealPath::resolve(file).unwrap(), last).unwrap()
    }

    /// The stamp of a file as if it had last been changed long ago.
    fn settled(file: &Path) -> FileStamp {
        let stamp = FileStamp::of(&file.metadata().unwrap());
        assert!(!stamp.is_settled(stamp.changed.0 + TICK_SECONDS), "just changed");
        assert!(stamp.is_settled(stamp.changed.0 + TICK_SECONDS + 1));
        stamp
    }

    // Mutant: without the check of `compared` the backup, which is gone, is read.
    #[test]
    fn a_file_that_has_not_changed_is_not_read_again() {
        let (_folder, file, backups, backup) = backed_up();
        let name = backup.backup_file_name.clone().unwrap();
        backups.compared().insert(name.clone(), settled(&file));
        backups.path(&name).unwrap().remove().unwrap();
        assert_eq!(renew(&backups, &file, &backup), backup);
    }

    #[test]
    fn a_change_of_the_same_size_in_the_same_moment_is_noticed() {
        let (_folder, file, backups, backup) = backed_up();
        assert_eq!(renew(&backups, &file, &backup), backup);
        let name = backup.backup_file_name.clone().unwrap();
        assert!(!backups.compared().contains_key(&name), "it was changed a moment ago");
        fs::write(&file, "two").unwrap();
        assert_eq!(renew(&backups, &file, &backup).version, 2);
    }

    #[test]
    fn a_change_whose_modification_time_was_reset_is_noticed() {
        let (_folder, file, backups, backup) = backed_up();
        let long_ago = SystemTime::now() - Duration::from_secs(1_000);
        let put_back = || {
            let times = FileTimes::new().set_modified(long_ago);
            File::options().write(true).open(&file).unwrap().set_times(times).unwrap();
        };
        put_back();
        backups.compared().insert(backup.backup_file_name.clone().unwrap(), settled(&file));
        let before = FileStamp::of(&file.metadata().unwrap()).changed;
        while FileStamp::of(&file.metadata().unwrap()).changed == before {
            fs::write(&file, "two").unwrap();
            put_back();
        }
        assert_eq!(renew(&backups, &file, &backup).version, 2);
    }
}
