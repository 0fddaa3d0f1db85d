//! Makes the network that programs of a sandbox share, and enters it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{getegid, geteuid};

use super::{become_program, spec};
use crate::spec::JoinSpec;
use crate::sys;

/// Makes a network with a loopback interface, reports it and waits until the input ends.
pub(super) fn make() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    let flags = match user.is_root() {
        true => CloneFlags::CLONE_NEWNET,
        false => CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET,
    };
    unshare(flags).map_err(|error| format!("cannot make a network: {error}"))?;
    if !user.is_root() {
        let (user, group) = (user.as_raw(), group.as_raw());
        for (name, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ] {
            fs::write(format!("/proc/self/{name}"), text)
                .map_err(|error| format!("cannot write {name}: {error}"))?;
        }
    }
    sys::start_loopback().map_err(|error| format!("cannot start the loopback: {error}"))?;
    let told = std::io::stdout().write_all(b"ready\n");
    told.map_err(|error| format!("cannot report the network: {error}"))?;
    // Ends with its input.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// Enters a network and becomes the program in the arguments.
pub(super) fn join(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    enter(&spec(&mut arguments)?)?;
    // A user loses what he may do in the namespace with this step.
    Err(become_program(arguments, std::env::vars_os()))
}

/// Enters a network.
pub(super) fn enter(spec: &JoinSpec) -> Result<(), String> {
    let open = |path| File::open(path).map_err(|error| format!("the network is gone: {error}"));
    let user = spec.user.as_ref().map(open).transpose()?;
    let network = open(&spec.network)?;
    let failed = |error| format!("cannot enter the network of the sandbox: {error}");
    if let Some(user) = user {
        setns(user, CloneFlags::CLONE_NEWUSER).map_err(failed)?;
    }
    setns(network, CloneFlags::CLONE_NEWNET).map_err(failed)
}
