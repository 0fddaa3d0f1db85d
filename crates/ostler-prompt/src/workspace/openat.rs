//! Folders as open handles, so that nobody can put a link in the way of what is opened in them.
//!
//! Everything is reached one name at a time from a folder that is already open, and no name may be a link. Whatever is
//! swapped meanwhile, what is opened is inside the folder, or nothing is.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use std::os::unix::ffi::OsStrExt as _;

/// A folder that is open for reading.
pub(super) fn open_folder(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// A regular file that is open for reading, and what it is. Opening waits for nobody, whatever it is.
pub(super) fn open_file(parent: impl AsFd, name: &OsStr) -> io::Result<(OwnedFd, Stat)> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((file, stat)),
        _ => Err(io::Error::from(rustix::io::Errno::LOOP)),
    }
}

/// What a name stands for; a link is a link.
pub(super) fn stat(parent: impl AsFd, name: &OsStr) -> io::Result<Stat> {
    Ok(rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The names in a folder, in their order.
pub(super) fn names(folder: impl AsFd) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether an error says that something is not what it was a moment ago.
pub(super) fn is_swapped(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [rustix::io::Errno::LOOP, rustix::io::Errno::NOTDIR, rustix::io::Errno::NXIO]
        .into_iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

/// A folder from which one goes only downwards.
#[derive(Debug)]
pub(super) struct Root {
    /// Where it is, without links.
    pub(super) path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// Opens a folder; links on the way to it are followed.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | passing();
        let folder = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { path, folder })
    }

    /// The folder that holds something below, and its name there; the root itself has none.
    pub(super) fn parent<'a>(&self, below: &'a Path) -> io::Result<(OwnedFd, Option<&'a OsStr>)> {
        let mut names = Vec::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(io::Error::from(rustix::io::Errno::LOOP)),
            }
        }
        let last = names.pop();
        let mut folder = self.folder.try_clone()?;
        for name in names {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | passing();
            folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
        }
        Ok((folder, last))
    }

    /// The root itself, open for reading.
    pub(super) fn folder(&self) -> io::Result<OwnedFd> {
        open_folder(&self.folder, OsStr::new("."))
    }
}

/// Folders on the way need not be readable, where the system can do with that.
fn passing() -> OFlags {
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY;
    flags
}
