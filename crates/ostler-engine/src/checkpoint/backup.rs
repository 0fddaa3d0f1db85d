//! Backups: copies of files, each under a name made of the file's path and a number.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use ostler_proto::Extra;
use ostler_proto::transcript::FileBackup;
use sha2::{Digest as _, Sha256};

use crate::regular;

/// The folder of a session's backups, made when it is first needed.
#[derive(Debug)]
pub(super) struct Backups {
    folder: PathBuf,
}

impl Backups {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Keeps a file as it is now; one that is not there is remembered as that.
    pub(super) fn make(&self, file: &Path, version: u64) -> io::Result<FileBackup> {
        let name = match file.metadata() {
            Ok(found) if found.is_file() => Some(self.copy(file, version)?),
            Ok(_) => return Err(io::Error::other("it is not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(FileBackup {
            backup_file_name: name,
            version,
            backup_time: super::now(),
            real_parent_dir: real_parent(file).map(|parent| parent.display().to_string()),
            extra: Extra::default(),
        })
    }

    /// The backup of a file as it is now: the last one, if nothing has changed since.
    pub(super) fn renew(&self, file: &Path, last: &FileBackup) -> io::Result<FileBackup> {
        let is_there = match file.metadata() {
            Ok(found) if found.is_file() => true,
            Ok(_) => return Err(io::Error::other("it is not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let is_same = match (&last.backup_file_name, is_there) {
            (Some(name), true) => have_same_content(&self.path(name)?, file)?,
            (name, is_there) => name.is_some() == is_there,
        };
        match is_same {
            true => Ok(last.clone()),
            false => self.make(file, last.version + 1),
        }
    }

    /// What a backup holds; `None` for a file that was not there.
    pub(super) fn read(&self, backup: &FileBackup) -> io::Result<Option<Vec<u8>>> {
        backup.backup_file_name.as_deref().map(|name| fs::read(self.path(name)?)).transpose()
    }

    /// Copies a backup into another folder, with its permissions.
    pub(super) fn copy_to(&self, other: &Self, backup: &FileBackup) -> io::Result<()> {
        let Some(name) = backup.backup_file_name.as_deref() else { return Ok(()) };
        let to = other.path(name)?;
        if to.exists() {
            return Ok(());
        }
        other.prepare()?;
        fs::copy(self.path(name)?, to).map(drop)
    }

    /// The permissions that the file had.
    pub(super) fn permissions(&self, backup: &FileBackup) -> io::Result<Option<fs::Permissions>> {
        let name = backup.backup_file_name.as_deref();
        name.map(|name| Ok(self.path(name)?.metadata()?.permissions())).transpose()
    }

    fn prepare(&self) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    fn copy(&self, file: &Path, version: u64) -> io::Result<String> {
        let name = format!("{}@v{version}", path_hash(file));
        self.prepare()?;
        let path = self.folder.join(&name);
        // A copy that was cut short must not be taken for a backup, nor an old one be overwritten halfway.
        let partial = self.folder.join(format!(".{name}.{}", uuid::Uuid::new_v4().simple()));
        let copied = fs::copy(file, &partial).and_then(|_| fs::rename(&partial, &path));
        if let Err(error) = copied {
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
        Ok(name)
    }

    /// Names come from session files too, and must not lead anywhere else.
    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '@';
        match !name.is_empty() && name.chars().all(is_plain) {
            true => Ok(self.folder.join(name)),
            false => Err(io::Error::other(format!("{name} is not the name of a backup"))),
        }
    }
}

/// Whether two files have the same content. Compared piece by piece: every prompt compares every file that was ever
/// changed, and some are large.
fn have_same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (regular::open(one)?, regular::open(other)?);
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
    let digest = Sha256::digest(file.as_os_str().as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The folder a file really lies in, or would.
pub(super) fn real_parent(file: &Path) -> Option<PathBuf> {
    let parent = file.parent()?;
    let there = parent.ancestors().find(|folder| folder.exists())?;
    let rest = parent.strip_prefix(there).ok()?;
    let there = there.canonicalize().ok()?;
    // To join nothing would add a slash, and programs compare the text.
    Some(if rest.as_os_str().is_empty() { there } else { there.join(rest) })
}
