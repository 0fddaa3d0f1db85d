//! What is prepared outside the sandbox, before bubblewrap builds it: the network, everything that is mounted, and the user if
//! the caller is root.
//!
//! A sandbox of root would still be root for some files of the kernel (`/proc/sys`), so it runs as a user without rights. The
//! mounts are in a mount namespace of this process, so they disappear with it.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::mount::{MountPropagationFlags, mount_change};

use super::{become_program, mounts, network, spec};
use crate::spec::OuterSpec;

pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let spec: OuterSpec = spec(&mut arguments)?;
    if let Some(group) = &spec.group {
        // First: nothing may start outside it. 0 is the process that writes it.
        std::fs::write(group.join("cgroup.procs"), "0")
            .map_err(|error| format!("cannot enter the control group: {error}"))?;
    }
    match &spec.network {
        Some(shared) => network::enter(shared)?,
        // To be allowed to mount.
        None if spec.id.is_none() => network::make_user_namespace()?,
        None => {}
    }
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|error| format!("cannot make a mount namespace: {error}"))?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(|error| format!("cannot separate the mounts: {error}"))?;
    mounts::make(&spec)?;
    if let Some(id) = spec.id {
        give_up_root(id).map_err(|error| format!("cannot give up root: {error}"))?;
    }
    // Another user loses what he may do in the user namespace with this step.
    Err(become_program(arguments, std::env::vars_os()))
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
