//! Replaces a file in one step.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};

use crate::openat::{self, folder_flags, raw_mode};
use crate::regular::not_regular;

/// Has a new file written next to `path` and renames it to `path`, so that a reader sees the old content or the new. A
/// link is replaced, not its target; links on the way to it are followed. The umask narrows `mode`.
///
/// # Errors
/// Those of `write`, and when the file cannot be created or renamed. The old file is unchanged then.
pub fn replace_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let flags = folder_flags() - OFlags::NOFOLLOW;
    let folder = rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    replace_in(&folder, name, mode, write)
}

/// The same in an open folder.
pub(crate) fn replace_in(
    folder: &OwnedFd,
    name: &OsStr,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    // Short, because the file's own name may be as long as the system allows.
    let temporary = format!(".ostler-{}", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &temporary, flags, raw_mode(mode))?;
    let written = write(&mut File::from(file))
        .and_then(|()| Ok(rustix::fs::renameat(folder, &temporary, folder, name)?));
    if written.is_err() {
        // The caller needs the first error, not that of the clean-up.
        let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
    }
    written
}

/// Replaces a file of the user in an open folder, see [`RealPath::edit`](crate::RealPath::edit). `before` is the
/// existing file.
pub(crate) fn edit_in(
    folder: &OwnedFd,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
    (before, permissions): (Option<Stat>, Option<Permissions>),
) -> io::Result<()> {
    let written = replace_in(folder, name, mode, |file| {
        if let Some(before) = &before {
            keep_owner(file, before)?;
        }
        // First, so that no process can read it that could not read the old one.
        match (permissions, &before) {
            (Some(permissions), _) => file.set_permissions(permissions)?,
            (None, Some(before)) => {
                rustix::fs::fchmod(&*file, Mode::from_raw_mode(before.st_mode & 0o7777))?
            }
            (None, None) => {}
        }
        file.write_all(bytes)
    });
    match written {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && before.is_some() => {
            let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NONBLOCK;
            let file = openat::open_below(folder, Path::new(name), flags, Mode::empty())?;
            let mut file = File::from(file);
            if !file.metadata()?.is_file() {
                return Err(not_regular());
            }
            file.write_all(bytes)
        }
        written => written,
    }
}

fn keep_owner(file: &File, before: &Stat) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.st_uid, before.st_gid) {
        fchown(file, Some(before.st_uid), Some(before.st_gid))?;
    }
    Ok(())
}
