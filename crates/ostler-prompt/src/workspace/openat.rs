//! Folders as open handles, so that no link can redirect what is opened in them.
//!
//! Every path is opened one name at a time, relative to an open folder, and no name may be a link. So the opened file
//! is inside the folder, even if another process replaces names by links meanwhile.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use std::os::unix::ffi::OsStrExt as _;

/// Opens a folder for reading.
pub(super) fn open_folder(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// Opens a regular file for reading and returns it with its metadata. Never blocks, not even on a pipe.
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

/// The metadata of a name, without following links.
pub(super) fn stat(parent: impl AsFd, name: &OsStr) -> io::Result<Stat> {
    Ok(rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The names in a folder, sorted.
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

/// Whether an error means that the file was replaced a moment ago.
pub(super) fn is_swapped(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [rustix::io::Errno::LOOP, rustix::io::Errno::NOTDIR, rustix::io::Errno::NXIO]
        .into_iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

/// A folder below which everything is opened.
#[derive(Debug)]
pub(super) struct Root {
    /// Its path, without links.
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

    /// The parent folder of a path below the root, and the name in it; no name for the root itself.
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

/// The flag for opening folders along a path. On Linux they need not be readable.
fn passing() -> OFlags {
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY;
    flags
}
