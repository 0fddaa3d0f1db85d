//! Paths that were resolved and then decided on: whatever is opened by them later is exactly that file.
//!
//! A permission is decided on a path with its links followed. Until the file is opened, a command in the background or
//! another program may put a link into the path. So nothing here follows a link: such a path is refused.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::openat::{self, folder_flags, open_absolute, raw_mode};
use crate::placeholder::is_placeholder;
use crate::regular::{not_regular, too_long};
use crate::replace::{edit_in, replace_in};

/// An absolute path that had no links, `.` or `..` in it when it was resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RealPath(PathBuf);

/// A link has appeared in a path since the path was resolved.
#[derive(Debug)]
struct LinkAppeared;

impl std::fmt::Display for LinkAppeared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it, or a folder on the way to it, was replaced by a symbolic link after it was checked")
    }
}

impl std::error::Error for LinkAppeared {}

/// Whether an operation failed because a link has appeared in the path since the path was resolved.
pub fn is_link_appeared(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<LinkAppeared>())
}

/// Explains a refused link: the system's own text is about too many links.
fn explained(error: io::Error) -> io::Error {
    match error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        true => io::Error::other(LinkAppeared),
        false => error,
    }
}

impl RealPath {
    /// Follows the links of a path. Of a path that does not exist yet, the existing part is resolved.
    ///
    /// # Errors
    /// When it is a dangling link or a loop of links, cannot be looked at, or has `..` after a part that does not exist.
    pub fn resolve(path: &Path) -> io::Result<Self> {
        let mut rest = Vec::new();
        let mut existing = path;
        // A dangling link exists, does not resolve, and could point anywhere.
        while let Err(error) = existing.symlink_metadata() {
            let (Some(name), Some(parent)) = (existing.file_name(), existing.parent()) else {
                return Err(error);
            };
            rest.push(name);
            existing = parent;
        }
        let mut path = existing.canonicalize()?;
        path.extend(rest.into_iter().rev());
        Self::from_resolved(path).ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    /// Follows the links of a path but not of its last name.
    ///
    /// # Errors
    /// As [`RealPath::resolve`], and for a path without a last name.
    pub fn resolve_parent(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok(Self::resolve(parent)?.join(name))
    }

    /// Takes a path that is resolved already; `None` if it is relative or has `.` or `..` in it.
    pub fn from_resolved(path: PathBuf) -> Option<Self> {
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::RootDir);
        (path.is_absolute() && path.components().all(is_plain)).then_some(Self(path))
    }

    /// A name in this folder.
    #[must_use]
    pub fn join(&self, name: &OsStr) -> Self {
        Self(self.0.join(name))
    }

    /// The path of something below this folder; `None` if it has `..` in it.
    pub fn below(&self, path: &Path) -> Option<Self> {
        if path.as_os_str().is_empty() {
            return Some(self.clone());
        }
        path.is_relative().then(|| Self::from_resolved(self.0.join(path))).flatten()
    }

    /// The folder in which it is.
    ///
    /// # Errors
    /// For the root of all folders.
    pub fn parent(&self) -> io::Result<Self> {
        let parent = self.0.parent().ok_or(io::ErrorKind::IsADirectory)?;
        Ok(Self(parent.to_owned()))
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path.
    pub fn into_path(self) -> PathBuf {
        self.0
    }

    /// The metadata of what is there. Something that is a link now is not followed, and its metadata is that of the link.
    ///
    /// # Errors
    /// When it is missing, or behind a link.
    pub fn metadata(&self) -> io::Result<Metadata> {
        #[cfg(target_os = "linux")]
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        #[cfg(not(target_os = "linux"))]
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let found = File::from(self.opened(flags)?).metadata()?;
        if is_placeholder(found.mode()) { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// When it is missing or not a regular file, or when there is a link in its path. Does not wait for a pipe.
    pub fn open(&self) -> io::Result<File> {
        // Checked first, because opening alone has an effect on some devices; checked again, because names can change.
        let found = self.0.symlink_metadata()?;
        if is_placeholder(found.mode()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !found.is_file() && !found.is_symlink() {
            return Err(not_regular());
        }
        self.open_listed()
    }

    /// Opens a file for reading that was listed as a regular file a moment ago. Saves a look at it before it is opened.
    ///
    /// # Errors
    /// As [`RealPath::open`].
    pub fn open_listed(&self) -> io::Result<File> {
        let file = File::from(self.opened(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
    }

    /// Reads a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// As [`RealPath::open`], and for a file that is longer.
    pub fn read_bytes(&self, most: u64) -> io::Result<Vec<u8>> {
        let bytes = crate::regular::read_at_most(self.open()?, most)?;
        if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(bytes) }
    }

    /// Reads a regular file of at most `most` bytes as text.
    ///
    /// # Errors
    /// As [`RealPath::read_bytes`], and for a file that is not UTF-8.
    pub fn read_text(&self, most: u64) -> io::Result<String> {
        String::from_utf8(self.read_bytes(most)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Opens a folder as a handle, for example to lock it.
    ///
    /// # Errors
    /// When it is missing or not a folder, or when there is a link in its path.
    pub fn open_folder(&self) -> io::Result<File> {
        self.opened(OFlags::RDONLY | OFlags::DIRECTORY).map(File::from)
    }

    /// Up to `most` names in this folder, in no particular order.
    ///
    /// # Errors
    /// As [`RealPath::open_folder`].
    pub fn names(&self, most: usize) -> io::Result<Vec<OsString>> {
        openat::first_names(self.open_folder()?, most)
    }

    /// Opens a regular file to write at its end. A missing one is created with this mode.
    ///
    /// # Errors
    /// As [`RealPath::open`].
    pub fn append(&self, mode: u32) -> io::Result<File> {
        let (folder, name) = self.parent_handle()?;
        must_be_writable(&folder, name)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
        let file = openat::open_below(&folder, Path::new(name), flags, raw_mode(mode));
        let file = File::from(file.map_err(explained)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
    }

    /// Creates a file where there is nothing.
    ///
    /// # Errors
    /// When something is there, or when there is a link in its path.
    pub fn create_new(&self, mode: u32) -> io::Result<File> {
        let (folder, name) = self.parent_handle()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = openat::open_below(&folder, Path::new(name), flags, raw_mode(mode));
        file.map(File::from).map_err(explained)
    }

    /// Creates this folder and the missing ones on the way to it, with this mode.
    ///
    /// # Errors
    /// When something else is there, or when there is a link in its path.
    pub fn create_folders(&self, mode: u32) -> io::Result<()> {
        self.folder(Some(mode)).map(drop)
    }

    /// Has a new file written and renames it to this path, so that a reader sees the old content or the new. The folder
    /// must exist. The umask narrows `mode`.
    ///
    /// # Errors
    /// Those of `write`, and when there is a link in its path. The old file is unchanged then.
    pub fn replace_with(
        &self,
        mode: u32,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let (folder, name) = self.parent_handle()?;
        must_be_writable(&folder, name)?;
        replace_in(&folder, name, mode, write)
    }

    /// Replaces a file of this program, and waits until it is on disk. An existing file keeps its permissions; a new one
    /// gets `mode`. Missing folders are created.
    ///
    /// # Errors
    /// When the new content cannot be written, or when there is a link in its path. The old file is unchanged then.
    pub fn replace(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.parent()?.create_folders(0o777)?;
        let before = self.metadata().ok().filter(Metadata::is_file);
        self.replace_with(mode, |file| {
            if let Some(before) = before {
                file.set_permissions(before.permissions())?;
            }
            file.write_all(bytes)?;
            file.sync_all()
        })
    }

    /// Replaces a file of the user: an existing file keeps its owner, and its permissions unless others are given. A new
    /// one gets `mode`. Does not wait for the disk. The folder must exist.
    ///
    /// If the folder or the owner does not allow that, an existing file is written in place.
    ///
    /// # Errors
    /// When the new content cannot be written, or when there is a link in its path.
    pub fn edit(
        &self,
        bytes: &[u8],
        mode: u32,
        permissions: Option<Permissions>,
    ) -> io::Result<()> {
        let (folder, name) = self.parent_handle()?;
        let before = must_be_writable(&folder, name)?;
        edit_in(&folder, name, bytes, mode, (before, permissions)).map_err(explained)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When it is missing or a folder, or when there is a link in its path.
    pub fn remove(&self) -> io::Result<()> {
        let (folder, name) = self.parent_handle()?;
        must_be_writable(&folder, name)?;
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn opened(&self, flags: OFlags) -> io::Result<OwnedFd> {
        open_absolute(&self.0, flags, Mode::empty()).map_err(explained)
    }

    fn parent_handle(&self) -> io::Result<(OwnedFd, &OsStr)> {
        let name = self.0.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        Ok((self.parent()?.folder(None)?, name))
    }

    /// Opens this folder. It and the missing ones on the way to it are created if their mode is given.
    fn folder(&self, new: Option<u32>) -> io::Result<OwnedFd> {
        let mode = match (self.opened(folder_flags()), new) {
            (Err(error), Some(mode)) if error.kind() == io::ErrorKind::NotFound => mode,
            (opened, _) => return opened,
        };
        let name = self.0.file_name().ok_or(io::ErrorKind::NotFound)?;
        let parent = self.parent()?.folder(new)?;
        openat::make_name(&parent, name, mode)?;
        let opened = openat::open_below(parent, Path::new(name), folder_flags(), Mode::empty());
        opened.map_err(explained)
    }
}

/// What is at a name that is about to be written, if anything. Only a regular file can be replaced.
fn must_be_writable(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<rustix::fs::Stat>> {
    match openat::stat(folder, name) {
        Ok(found) => match openat::kind(&found) {
            FileType::RegularFile => Ok(Some(found)),
            FileType::Symlink => Err(io::Error::other(LinkAppeared)),
            FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
            _ if is_placeholder(found.st_mode) => Ok(None),
            _ => Err(not_regular()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
