//! Keeps the places of protected paths that do not exist, so that a program cannot create them.
//!
//! A mount needs something to be mounted on, so an empty file or folder takes the place while a program runs. Several
//! programs, also of other processes, may need the same one: each holds a shared lock on it, and the last one removes it.
//! If this process is killed, the watchdog of `ostler-process` does that.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ostler_process::placeholder;
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::boundary::{Kind, Protected};
use crate::error::SandboxError;

/// How often to try again when another process removes the same placeholder at the same time.
const TRIES: usize = 100;
/// The permissions of placeholders. The user can write them, so that tools outside the sandbox can put something in their
/// place; then they are placeholders no longer. The sticky bit, which means nothing here, tells them from other empty files.
const FILE_MODE: u32 = STICKY | 0o644;
const FOLDER_MODE: u32 = STICKY | 0o755;
const STICKY: u32 = 0o1000;

/// A placeholder, which stays while this value does.
#[derive(Debug)]
pub(crate) struct Mask {
    path: PathBuf,
    /// Open, with a shared lock.
    file: File,
}

/// Where a protected path can be protected: at itself, or at its first parent that is missing or a placeholder.
pub(crate) fn place(protected: &Protected) -> (PathBuf, Kind) {
    let mut place = (protected.path.as_path(), protected.kind);
    for parent in protected.path.ancestors().skip(1) {
        match fs::symlink_metadata(parent) {
            Err(_) => place = (parent, Kind::Folder),
            Ok(about) if about.is_dir() && is_placeholder(parent, &about) => {
                place = (parent, Kind::Folder);
            }
            Ok(_) => break,
        }
    }
    (place.0.to_owned(), place.1)
}

impl Mask {
    /// Makes or joins a placeholder. `None` if something else is there, which needs none.
    pub(crate) fn of(path: &Path, kind: Kind) -> Result<Option<Self>, SandboxError> {
        if path.to_str().is_none_or(|path| path.contains('\n')) {
            return Err(SandboxError::Path(path.to_owned()));
        }
        let found = || fs::symlink_metadata(path).ok();
        if found().is_some_and(|found| !is_placeholder(path, &found)) {
            return Ok(None);
        }
        // Before it exists, so that there is no moment at which it would stay.
        placeholder::add(path).map_err(SandboxError::io(path))?;
        let mask = Self::join(path, kind);
        if !matches!(mask, Ok(Some(_))) {
            placeholder::remove(path);
        }
        mask.map_err(SandboxError::io(path))
    }

    fn join(path: &Path, kind: Kind) -> io::Result<Option<Self>> {
        for _ in 0..TRIES {
            make(path, kind)?;
            let opened = OpenOptions::new()
                .read(true)
                .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
                .open(path);
            let file = match opened {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            flock(&file, FlockOperation::LockShared)?;
            let about = file.metadata()?;
            if !is_placeholder(path, &about) {
                return Ok(None);
            }
            // The last user of it may have removed it before it was locked.
            if fs::symlink_metadata(path).is_ok_and(|now| is_same(&now, &about)) {
                return Ok(Some(Self { path: path.to_owned(), file }));
            }
        }
        Err(io::Error::other("other processes create and remove it all the time"))
    }

    fn remove_if_last(&self) -> io::Result<()> {
        // Also gives up the shared lock if others hold one: of two that end together, the second one gets the lock.
        flock(&self.file, FlockOperation::NonBlockingLockExclusive)?;
        let (mine, now) = (self.file.metadata()?, fs::symlink_metadata(&self.path)?);
        match is_same(&mine, &now) && is_placeholder(&self.path, &now) {
            true if now.is_dir() => fs::remove_dir(&self.path),
            true => fs::remove_file(&self.path),
            false => Ok(()),
        }
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        // Fails while others use it, and if someone has replaced it.
        let _ = self.remove_if_last();
        placeholder::remove(&self.path);
    }
}

fn make(path: &Path, kind: Kind) -> io::Result<()> {
    let made = match kind {
        Kind::File => {
            OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path).map(drop)
        }
        Kind::Folder => DirBuilder::new().mode(FOLDER_MODE).create(path),
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Whether a file or folder, whose metadata is known, looks like a placeholder: empty, and with the permissions of one.
fn is_placeholder(path: &Path, about: &Metadata) -> bool {
    // The mask of new files may have removed more.
    let mode = about.mode() & 0o7777;
    let is_within = |most: u32| mode & STICKY != 0 && mode & !most == 0;
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    (about.is_file() && about.len() == 0 && is_within(FILE_MODE))
        || (about.is_dir() && is_within(FOLDER_MODE) && is_empty())
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_goes_with_its_last_user() {
        let folder = tempfile::tempdir().unwrap();
        for (name, kind) in [("file", Kind::File), ("folder", Kind::Folder)] {
            let path = folder.path().join(name);
            let first = Mask::of(&path, kind).unwrap().unwrap();
            let second = Mask::of(&path, kind).unwrap().unwrap();
            drop(first);
            assert!(path.exists(), "{name}");
            drop(second);
            assert!(!path.exists(), "{name}");
        }
    }

    #[test]
    fn a_file_of_the_user_is_neither_joined_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        assert!(Mask::of(&path, Kind::File).unwrap().is_none());
        assert!(path.exists());
        // A user replaces the placeholder while it is used.
        fs::remove_file(&path).unwrap();
        let mask = Mask::of(&path, Kind::File).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(mask);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    // Mutant: placeholders that no user may write.
    #[test]
    fn what_a_tool_puts_in_the_place_of_a_placeholder_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, inner) = (folder.path().join("file"), folder.path().join("folder/inner"));
        let masks = [(file.as_path(), Kind::File), (inner.parent().unwrap(), Kind::Folder)]
            .map(|(path, kind)| Mask::of(path, kind).unwrap().unwrap());
        for path in [&file, inner.parent().unwrap()] {
            let mode = fs::symlink_metadata(path).unwrap().mode();
            assert_ne!(mode & 0o200, 0, "{path:?} can be written by its owner");
        }
        fs::write(&file, "mine").unwrap();
        fs::write(&inner, "mine").unwrap();
        drop(masks);
        for path in [file, inner] {
            assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        }
    }

    #[test]
    fn of_many_users_that_end_together_the_last_one_removes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for _ in 0..200 {
            let barrier = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let mask = Mask::of(&path, Kind::File).unwrap().unwrap();
                        barrier.wait();
                        drop(mask);
                    });
                }
            });
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_missing_parent_is_protected_in_the_place_of_its_child() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str, kind| place(&Protected { path: folder.path().join(path), kind });
        assert_eq!(at("a", Kind::File), (folder.path().join("a"), Kind::File));
        assert_eq!(at("a/b/c", Kind::File), (folder.path().join("a"), Kind::Folder));
        let mask = Mask::of(&folder.path().join("a"), Kind::Folder).unwrap().unwrap();
        assert_eq!(at("a/b/c", Kind::File), (folder.path().join("a"), Kind::Folder));
        drop(mask);
        fs::create_dir(folder.path().join("a")).unwrap();
        assert_eq!(at("a/b/c", Kind::File), (folder.path().join("a/b"), Kind::Folder));
    }
}
