//! For a caller that is root: the sandbox runs as a user without rights, who sees the writable folders as his own.
//!
//! A sandbox of root would still be root for some files of the kernel (`/proc/sys`), so root is given up before it is
//! built. Each tree gets a mount in which its owner appears as that user. The mounts are in a mount namespace of this
//! process, so they disappear with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};

use super::{become_program, network, spec};
use crate::spec::{OuterSpec, Tree};
use crate::sys;

pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let spec: OuterSpec = spec(&mut arguments)?;
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|error| format!("cannot make a mount namespace: {error}"))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(|error| format!("cannot separate the mounts: {error}"))?;
    // All of them before the stage covers any.
    let trees: Vec<_> = spec.trees.iter().map(copy).collect::<Result<_, _>>()?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("tmpfs", &spec.stage, "tmpfs", flags, Some(c"mode=0755"))
        .map_err(|error| format!("cannot mount {}: {error}", spec.stage.display()))?;
    for (number, (tree, of)) in trees.iter().zip(&spec.trees).enumerate() {
        place(tree, &of.source, &spec.stage.join(number.to_string()))
            .map_err(|error| format!("cannot show {}: {error}", of.source.display()))?;
    }
    if let Some(shared) = &spec.network {
        network::enter(shared)?;
    }
    give_up_root(spec.id).map_err(|error| format!("cannot give up root: {error}"))?;
    Err(become_program(arguments, std::env::vars_os()))
}

/// A copy of a tree of mounts with other owners.
fn copy(tree: &Tree) -> Result<OwnedFd, String> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let copy = open_tree(CWD, &tree.source, flags)
        .map_err(|error| format!("cannot open {}: {error}", tree.source.display()))?;
    let namespace = File::open(&tree.namespace)
        .map_err(|error| format!("cannot open {}: {error}", tree.namespace.display()))?;
    sys::map_owners(copy.as_fd(), namespace.as_fd()).map_err(|error| {
        let path = tree.source.display();
        format!(
            "the file system of {path} cannot show its files to the user of the sandbox ({error}). Start this \
             program as that user instead of root, or move the folder to another file system (ext4, xfs, btrfs, tmpfs)"
        )
    })?;
    Ok(copy)
}

fn place(tree: &OwnedFd, source: &Path, target: &Path) -> std::io::Result<()> {
    // Before the stage covered it, it was looked at by its type only; the tree itself says what it is.
    match rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode) {
        rustix::fs::FileType::Directory => std::fs::create_dir(target)?,
        rustix::fs::FileType::Symlink => {
            return Err(std::io::Error::other(format!("{} is a link", source.display())));
        }
        _ => drop(File::create_new(target)?),
    }
    Ok(move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

fn give_up_root(id: u32) -> nix::Result<()> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)
}

/// Waits in a user namespace of its own until the input ends.
pub(super) fn wait_in_namespace() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|error| format!("cannot make a user namespace: {error}"))?;
    let told = std::io::stdout().write_all(b"ready\n");
    told.map_err(|error| format!("cannot report the user namespace: {error}"))?;
    // Ends with its input.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}
