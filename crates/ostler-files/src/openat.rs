//! Folders as open handles, so that no link can redirect what is opened in them.
//!
//! Every path is opened relative to an open folder, and no name in it may be a link. So the opened file is inside the
//! folder, even if another process replaces names by links meanwhile. Linux checks that with one call, `openat2`; older
//! kernels and other systems open one name after the other.
//!
//! A hard link is not a link in this sense: creating one needs access to the file itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Opens a path below a folder. No name in it may be a link; `..` is refused.
///
/// # Errors
/// With the code `ELOOP` if there is a link in the path, and `EXDEV` if it leads out of the folder or contains `..`.
pub fn open_below(
    folder: impl AsFd,
    below: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let names = names_of(below)?;
    match open_in_kernel(&folder, below, flags, mode, true) {
        Some(opened) => opened,
        None => open_name_by_name(folder, &names, flags, mode),
    }
}

/// Opens an absolute path, as [`open_below`].
pub(crate) fn open_absolute(path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    if let Some(opened) = open_in_kernel(rustix::fs::CWD, path, flags, mode, false) {
        return opened;
    }
    let root = rustix::fs::open("/", folder_flags(), Mode::empty())?;
    open_name_by_name(root, &names_of(path.strip_prefix("/").unwrap_or(path))?, flags, mode)
}

/// Opens a path with `openat2`; `None` if the system does not have it.
#[cfg(target_os = "linux")]
fn open_in_kernel(
    folder: impl AsFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    is_beneath: bool,
) -> Option<io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let resolve = if is_beneath { no_links | ResolveFlags::BENEATH } else { no_links };
    // Together with PATH it would open a link itself, which then is not a folder.
    let is_folder = flags.contains(OFlags::DIRECTORY);
    let flags = if is_folder { flags - OFlags::NOFOLLOW } else { flags };
    match rustix::fs::openat2(folder, path, flags | OFlags::CLOEXEC, mode, resolve) {
        // Old kernels do not have the call, and some containers forbid it.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => None,
        opened => Some(opened.map_err(io::Error::from)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_in_kernel(
    _: impl AsFd,
    _: &Path,
    _: OFlags,
    _: Mode,
    _: bool,
) -> Option<io::Result<OwnedFd>> {
    None
}

/// The names of a relative path without `..`.
fn names_of(below: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in below.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(Errno::XDEV.into()),
        }
    }
    Ok(names)
}

/// Opens a path without `openat2`.
fn open_name_by_name(
    folder: impl AsFd,
    names: &[&OsStr],
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let itself = OsStr::new(".");
    let (last, folders) = names.split_last().unwrap_or((&itself, &[]));
    let mut at = None;
    for name in folders {
        at = Some(match &at {
            Some(at) => open_name(at, name, folder_flags(), Mode::empty())?,
            None => open_name(&folder, name, folder_flags(), Mode::empty())?,
        });
    }
    match at {
        Some(at) => open_name(at, last, flags, mode),
        None => open_name(folder, last, flags, mode),
    }
}

/// Opens one name in a folder, which must not be a link.
fn open_name(parent: impl AsFd, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&parent, name, flags, mode).map_err(|error| {
        // A folder was wanted, and a link is not one.
        let is_link = error == Errno::NOTDIR
            && stat(&parent, name).is_ok_and(|found| kind(&found) == FileType::Symlink);
        if is_link { Errno::LOOP.into() } else { error.into() }
    })
}

/// Flags for opening a folder to open, create, rename or remove something in it. On Linux it need not be readable.
pub(crate) fn folder_flags() -> OFlags {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Opens a folder for reading.
///
/// # Errors
/// When it cannot be opened, or is a link.
pub fn open_folder(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    open_name(parent, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Opens a folder for reading and creates it if it is missing.
///
/// # Errors
/// As [`open_folder`], and when it cannot be created.
pub fn make_folder(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    make_name(&parent, name, 0o755)?;
    open_folder(parent, name)
}

/// Creates a folder unless something has its name.
pub(crate) fn make_name(parent: impl AsFd, name: &OsStr, mode: u32) -> io::Result<()> {
    match rustix::fs::mkdirat(parent, name, raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn raw_mode(mode: u32) -> Mode {
    Mode::from_raw_mode(rustix::fs::RawMode::try_from(mode & 0o7777).unwrap_or_default())
}

/// Opens a regular file for reading and returns it with its metadata. Never blocks, not even on a pipe.
///
/// # Errors
/// When it cannot be opened; with the code `ELOOP` if it is a link, or not a regular file.
pub fn open_file(parent: impl AsFd, name: &OsStr) -> io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open_name(parent, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    match kind(&stat) {
        FileType::RegularFile => Ok((file, stat)),
        _ => Err(Errno::LOOP.into()),
    }
}

/// The metadata of a name, without following links.
///
/// # Errors
/// When it is missing, or the folder cannot be searched.
pub fn stat(parent: impl AsFd, name: &OsStr) -> io::Result<Stat> {
    Ok(rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Whether it is a file, a folder, a link or something else.
pub fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The names in a folder, sorted.
///
/// # Errors
/// When it cannot be read.
pub fn names(folder: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = first_names(folder, usize::MAX)?;
    names.sort_unstable();
    Ok(names)
}

/// Up to `most` names in a folder, in no particular order.
pub(crate) fn first_names(folder: impl AsFd, most: usize) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
        if names.len() == most {
            break;
        }
    }
    Ok(names)
}

/// Whether an error means that the file was replaced a moment ago.
pub fn is_swapped(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::LOOP, Errno::NOTDIR, Errno::NXIO, Errno::XDEV]
        .into_iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

/// A folder below which everything is opened.
#[derive(Debug)]
pub struct Root {
    /// Its path, without links.
    pub path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// Opens a folder; links on the way to it are followed.
    ///
    /// # Errors
    /// When it is missing, or not a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let folder = rustix::fs::open(&path, folder_flags(), Mode::empty())?;
        Ok(Self { path, folder })
    }

    /// The parent folder of a path below the root, and the name in it; no name for the root itself.
    ///
    /// # Errors
    /// When a folder on the way is missing, or a link.
    pub fn parent<'a>(&self, below: &'a Path) -> io::Result<(OwnedFd, Option<&'a OsStr>)> {
        let Some(name) = below.file_name() else {
            // Empty, or it ends with `..`.
            let is_empty = below.components().all(|part| part == Component::CurDir);
            let folder = is_empty.then(|| self.folder.try_clone());
            return Ok((folder.unwrap_or_else(|| Err(Errno::XDEV.into()))?, None));
        };
        let parent = below.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() {
            return Ok((self.folder.try_clone()?, Some(name)));
        }
        Ok((open_below(&self.folder, parent, folder_flags(), Mode::empty())?, Some(name)))
    }

    /// The root itself, open for reading.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn folder(&self) -> io::Result<OwnedFd> {
        open_folder(&self.folder, OsStr::new("."))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    type Open = fn(&File, &Path, OFlags, Mode) -> io::Result<OwnedFd>;

    /// The codes with which paths are refused: by the kernel, and name by name.
    fn refusals(path: &str, flags: OFlags) -> [Option<i32>; 2] {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::write(root.join("sub/deep/file"), "text").unwrap();
        fs::write(place.path().join("secret"), "secret").unwrap();
        symlink("sub", root.join("near")).unwrap();
        symlink("deep/file", root.join("sub/file")).unwrap();
        symlink(place.path(), root.join("out")).unwrap();
        symlink("/proc/self/cwd", root.join("magic")).unwrap();
        let folder = File::open(&root).unwrap();
        let opens: [Open; 2] = [
            |folder, path, flags, mode| open_below(folder, path, flags, mode),
            |folder, path, flags, mode| open_name_by_name(folder, &names_of(path)?, flags, mode),
        ];
        opens.map(|open| {
            let opened = open(&folder, Path::new(path), flags, Mode::empty());
            opened.err().map(|error| error.raw_os_error().unwrap())
        })
    }

    // Mutants: `openat2` without NO_SYMLINKS; `open_name` without NOFOLLOW; `names_of` accepts `..`.
    #[test]
    fn a_path_with_a_link_in_it_is_refused_with_and_without_openat2() {
        let (file, folder) = (OFlags::RDONLY, folder_flags());
        for (path, flags) in
            [("sub/deep/file", file), ("sub", folder), ("./sub/deep", folder), (".", folder)]
        {
            assert_eq!(refusals(path, flags), [None, None], "{path}");
        }
        for (path, flags, error) in [
            ("near/deep/file", file, Errno::LOOP),
            ("near", OFlags::RDONLY | OFlags::DIRECTORY, Errno::LOOP),
            ("near", folder, Errno::LOOP),
            ("sub/file", file, Errno::LOOP),
            ("out/secret", file, Errno::LOOP),
            ("magic/x", file, Errno::LOOP),
            ("../secret", file, Errno::XDEV),
            ("sub/../../secret", file, Errno::XDEV),
            ("/etc/hostname", file, Errno::XDEV),
            ("sub/none", file, Errno::NOENT),
            ("sub/deep/file/x", file, Errno::NOTDIR),
        ] {
            let code = Some(error.raw_os_error());
            assert_eq!(refusals(path, flags), [code, code], "{path}");
        }
    }

    #[test]
    fn a_root_refuses_paths_that_lead_out() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("root/sub")).unwrap();
        symlink("..", place.path().join("root/up")).unwrap();
        let root = Root::open(&place.path().join("root")).unwrap();
        assert_eq!(root.parent(Path::new("sub/new")).unwrap().1, Some(OsStr::new("new")));
        assert_eq!(root.parent(Path::new("")).unwrap().1, None);
        for path in ["..", "sub/..", "../x", "sub/../x", "up/x", "/x/y"] {
            assert!(root.parent(Path::new(path)).is_err(), "{path}");
        }
        assert_eq!(names(root.folder().unwrap()).unwrap(), ["sub", "up"]);
    }
}
