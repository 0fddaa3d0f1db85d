//! Makes the network that programs of a sandbox share, and enters it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{getegid, geteuid};

use crate::spec::NetworkSpec;
use crate::sys;

/// Makes a network with a loopback interface, reports it and waits until the input ends.
pub(super) fn make() -> Result<(), String> {
    if !geteuid().is_root() {
        make_user_namespace()?;
    }
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("cannot make a network: {error}"))?;
    sys::start_loopback().map_err(|error| format!("cannot start the loopback: {error}"))?;
    let told = std::io::stdout().write_all(b"ready\n");
    told.map_err(|error| format!("cannot report the network: {error}"))?;
    // Ends with its input.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

/// Makes a user namespace, in which this process has all rights over what it makes, and enters it.
pub(super) fn make_user_namespace() -> Result<(), String> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|error| format!("cannot make a user namespace: {error}"))?;
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/self/{name}"), text)
            .map_err(|error| format!("cannot write {name}: {error}"))?;
    }
    Ok(())
}

/// Enters a network, and the user namespace that it belongs to, in which this process has all rights.
pub(super) fn enter(spec: &NetworkSpec) -> Result<(), String> {
    let open = |path| File::open(path).map_err(|error| format!("the network is gone: {error}"));
    let user = spec.user.as_ref().map(open).transpose()?;
    let network = open(&spec.network)?;
    let failed = |error| format!("cannot enter the network of the sandbox: {error}");
    if let Some(user) = user {
        setns(user, CloneFlags::CLONE_NEWUSER).map_err(failed)?;
    }
    setns(network, CloneFlags::CLONE_NEWNET).map_err(failed)
}
