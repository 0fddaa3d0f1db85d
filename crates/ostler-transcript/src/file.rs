//! A file that only grows, by whole lines, one `write` call each.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Appends lines to a file. It is opened, or created, with the first of them.
#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    file: Option<File>,
    /// Shows other processes that the file is in use, until it is dropped.
    lock: Option<File>,
    is_new: bool,
    /// Whether the file may end with an incomplete line, which the next one must not continue.
    torn: bool,
}

impl LineFile {
    /// A file that must not exist yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, lock: None, is_new: true, torn: false }
    }

    /// A file that must exist.
    pub(super) fn existing(path: PathBuf) -> Self {
        Self { is_new: false, ..Self::new(path) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line; `line` has no line break.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None if self.is_new => {
                let file = create_private(&self.path)?;
                // Shows other processes that this one writes the file, for as long as it is open. Where locks are not
                // supported, there is no warning.
                let _ = file.try_lock();
                file
            }
            None => self.reopen()?,
        };
        self.is_new = false;
        let start: &[u8] = if self.torn { b"\n" } else { b"" };
        let written = file.write_all(&[start, line, b"\n"].concat());
        self.torn = written.is_err();
        self.file = Some(file);
        written
    }

    /// Shows other processes that an existing file is in use, and returns whether another one has it open for writing.
    pub(super) fn claim(&mut self) -> io::Result<bool> {
        // A separate handle: the file is opened for writing with the first line.
        let lock = ostler_files::open(&self.path)?;
        let is_in_use = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        self.lock = Some(lock);
        Ok(is_in_use)
    }

    fn reopen(&mut self) -> io::Result<File> {
        // For reading too, so that a pipe in its place does not make it wait for a reader.
        let mut file = OpenOptions::new().read(true).append(true).open(&self.path)?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        self.torn = last != [b'\n'];
        Ok(file)
    }
}

/// Creates a file that only its owner can read, and its folders likewise.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let mut folders = fs::DirBuilder::new();
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        folders.mode(0o700);
        options.mode(0o600);
    }
    if let Some(parent) = path.parent() {
        folders.recursive(true).create(parent)?;
    }
    options.open(path)
}
