//! Mounts what a sandbox shows: the whole file system read-only, and on it the folders of the boundary.
//!
//! Bubblewrap could do that, but it reads the list of all mounts again for each of them, which takes longer than everything
//! else together. Here each mount takes a few system calls, and bubblewrap takes over all of them at once.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, open, openat, openat2,
};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};

use super::devices;
use crate::spec::{Mount, OuterSpec, ROOT, STAGE, What};
use crate::sys;

/// How often to look for a path while others rename what leads to it.
const TRIES: usize = 100;

/// The bytes of memory for each file that an empty folder can have.
const BYTES_PER_FILE: u64 = 16 * 1024;

/// Makes the mounts in the stage. The user that the helper becomes owns the folders that are made.
pub(super) fn make(spec: &OuterSpec) -> Result<(), String> {
    let mounts = &spec.mounts;
    let failed = |error| format!("cannot copy the view of the file system: {error}");
    let root = copy(CWD, Path::new("/")).map_err(failed)?;
    sys::restrict_mount(root.as_fd(), true)
        .map_err(|error| format!("cannot restrict the view of the file system: {error}"))?;
    // All of them before the stage covers any.
    let trees = mounts.iter().map(tree).collect::<Result<Vec<_>, _>>()?;
    let devices = devices::copies().map_err(failed)?;
    let root = place_root(&root).map_err(failed)?;
    let folder = Folder { root, owner: spec.id, temporary: spec.temporary };
    devices::mount(&folder, devices).map_err(|error| format!("cannot show /dev: {error}"))?;
    for (mount, tree) in mounts.iter().zip(trees) {
        folder
            .mount(mount, tree)
            .map_err(|error| format!("cannot show {}: {error}", mount.target.display()))?;
    }
    // Only now: other mounts needed folders in them.
    for mount in mounts {
        if let What::Temporary { is_writable: false } = mount.what {
            folder
                .seal(&mount.target)
                .map_err(|error| format!("cannot protect {}: {error}", mount.target.display()))?;
        }
    }
    Ok(())
}

/// Mounts the stage, and in it the copy of the root folder.
fn place_root(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("tmpfs", STAGE, "tmpfs", flags, Some(c"mode=0755"))?;
    let stage = open(STAGE, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    mkdirat(&stage, ROOT, Mode::from_raw_mode(0o755))?;
    move_mount(root, "", &stage, ROOT, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    openat(&stage, ROOT, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// A copy of a file or folder with everything that is mounted in it, not mounted itself yet.
pub(super) fn copy(from: impl std::os::fd::AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(from, path, flags)
}

/// The copy that a mount shows, if it shows something that exists.
fn tree(mount: &Mount) -> Result<Option<OwnedFd>, String> {
    let (source, owners, is_writable) = match &mount.what {
        What::Tree { source, owners, is_writable } => {
            (source.as_path(), owners.as_ref(), *is_writable)
        }
        What::Nothing => (Path::new("/dev/null"), None, false),
        What::Temporary { .. } | What::Part { .. } => return Ok(None),
    };
    let path = source.display();
    let failed = |error: Errno| format!("cannot open {path}: {error}");
    let copy = copy(CWD, source).map_err(failed)?;
    if kind(&copy).map_err(failed)? == FileType::Symlink {
        return Err(format!("cannot show {path}: it is a link"));
    }
    if let Some(owners) = owners {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let owners = open(owners, flags, Mode::empty()).map_err(failed)?;
        sys::map_owners(copy.as_fd(), owners.as_fd()).map_err(|error| {
            format!(
                "the file system of {path} cannot show its files to the user of the sandbox ({error}). Start this \
                 program as that user instead of root, or move the folder to another file system (ext4, xfs, btrfs, \
                 tmpfs)"
            )
        })?;
    }
    sys::restrict_mount(copy.as_fd(), !is_writable)
        .map_err(|error| format!("cannot restrict {path}: {error}"))?;
    Ok(Some(copy))
}

fn kind(file: &OwnedFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode))
}

/// The root folder of the sandbox.
pub(super) struct Folder {
    root: OwnedFd,
    owner: Option<u32>,
    /// How many bytes an empty folder can hold.
    temporary: Option<u64>,
}

impl Folder {
    fn mount(&self, mount: &Mount, tree: Option<OwnedFd>) -> io::Result<()> {
        match (&mount.what, tree) {
            (What::Temporary { .. }, _) => self.mount_temporary(&mount.target, 0o755),
            (What::Part { root, is_writable }, _) => self.fix(root, &mount.target, *is_writable),
            (_, Some(tree)) => self.mount_tree(&tree, &mount.target),
            (_, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Mounts a copy of a file or folder.
    pub(super) fn mount_tree(&self, tree: &OwnedFd, target: &Path) -> io::Result<()> {
        let place = match kind(tree)? {
            FileType::Directory => self.folder(target)?,
            _ => self.file(target)?,
        };
        Ok(move_mount(tree, "", &place, "", EMPTY_PATHS)?)
    }

    /// Mounts an empty folder that can be written.
    pub(super) fn mount_temporary(&self, target: &Path, mode: u32) -> io::Result<()> {
        let place = self.folder(target)?;
        let owner = self.owner.map(|id| format!(",uid={id},gid={id}")).unwrap_or_default();
        // Many files without content take memory too.
        let size =
            |most: u64| format!(",size={most},nr_inodes={}", (most / BYTES_PER_FILE).max(64));
        let size = self.temporary.map(size).unwrap_or_default();
        let options = std::ffi::CString::new(format!("mode={mode:o}{owner}{size}"))?;
        let place = sys::path_of(place.as_fd());
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        Ok(mount("tmpfs", place, "tmpfs", flags, Some(options.as_c_str()))?)
    }

    /// Makes a part of a mounted folder a mount of its own: it cannot be renamed, removed or replaced from inside.
    fn fix(&self, root: &Path, path: &Path, is_writable: bool) -> io::Result<()> {
        let path = path.strip_prefix(root).map_err(io::Error::other)?;
        let root = self.find(root, ResolveFlags::IN_ROOT)?;
        // What was looked at before may be a link by now. The descriptor stays what it is.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let place = resolve_from(root.as_fd(), path, resolve)?;
        let copy = copy(&place, Path::new(""))?;
        sys::restrict_mount(copy.as_fd(), !is_writable)?;
        Ok(move_mount(&copy, "", &place, "", EMPTY_PATHS)?)
    }

    /// Makes a mounted folder read-only, but not what is mounted in it.
    fn seal(&self, target: &Path) -> io::Result<()> {
        sys::seal_mount(self.find(target, ResolveFlags::IN_ROOT)?.as_fd())
    }

    fn find(&self, path: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        resolve_from(self.root.as_fd(), path, resolve)
    }

    /// The folder at a path, which is made if it is missing.
    pub(super) fn folder(&self, path: &Path) -> Result<OwnedFd, Errno> {
        match self.find(path, ResolveFlags::IN_ROOT) {
            Err(Errno::NOENT) => {}
            found => return found,
        }
        let (parent, name) = (path.parent(), path.file_name());
        let (parent, name) = parent.zip(name).ok_or(Errno::NOENT)?;
        let parent = self.folder(parent)?;
        self.as_owner(|| mkdirat(parent, name, Mode::from_raw_mode(0o755)))?;
        self.find(path, ResolveFlags::IN_ROOT)
    }

    /// The file at a path, which is made if it is missing.
    fn file(&self, path: &Path) -> Result<OwnedFd, Errno> {
        match self.find(path, ResolveFlags::IN_ROOT) {
            Err(Errno::NOENT) => {}
            found => return found,
        }
        let (parent, name) = (path.parent(), path.file_name());
        let (parent, name) = parent.zip(name).ok_or(Errno::NOENT)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let parent = self.folder(parent)?;
        self.as_owner(|| openat(parent, name, flags, Mode::from_raw_mode(0o644)))?;
        self.find(path, ResolveFlags::IN_ROOT)
    }

    /// Makes something as the user that the helper becomes. In folders that show other owners root itself cannot.
    fn as_owner<T>(&self, make: impl FnOnce() -> T) -> T {
        let Some(id) = self.owner else { return make() };
        let before = (setfsuid(Uid::from_raw(id)), setfsgid(Gid::from_raw(id)));
        let made = make();
        setfsuid(before.0);
        setfsgid(before.1);
        made
    }
}

const EMPTY_PATHS: MoveMountFlags =
    MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH.union(MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH);

fn resolve_from(
    root: BorrowedFd<'_>,
    path: &Path,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let open = || openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve);
    // The kernel asks to try again if something on the way is renamed meanwhile.
    let opened = (1..TRIES).map(|_| open()).find(|opened| !matches!(opened, Err(Errno::AGAIN)));
    opened.unwrap_or_else(open)
}
