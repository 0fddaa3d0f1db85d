//! The way to the proxy: a process inside that listens on a port and passes connections on to a Unix socket, which the
//! program itself may not use.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use ostler_egress::bridge::{CONNECTIONS, serve};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::spec::BRIDGE;

/// Starts the bridge. Returns the variables with which programs find it.
pub(super) fn start(socket: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |error: std::io::Error| format!("cannot start the way to the proxy: {error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let mut bridge = Command::new("/proc/self/exe");
    bridge.arg(BRIDGE).arg(socket).env_clear().stdin(OwnedFd::from(listener));
    // Not the pipes of the program: their end means that the program has ended.
    bridge.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(failed)?;
    Ok(ostler_egress::variables(port))
}

/// Is the bridge: the listener is the standard input.
pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    let socket = arguments.next().ok_or("the socket of the proxy is missing")?;
    // So that the program cannot look into this process, which may use the socket.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| format!("cannot protect the way to the proxy: {error}"))?;
    let listener = std::io::stdin().as_fd().try_clone_to_owned();
    let listener = listener.map_err(|error| format!("the listener is missing: {error}"))?;
    serve(&TcpListener::from(listener), Path::new(&socket), CONNECTIONS)
}
