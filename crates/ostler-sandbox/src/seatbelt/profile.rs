//! The profile of a boundary for macOS: text for `sandbox-exec`, made without looking at files.
//!
//! Everything is denied unless a rule allows it, and of several rules that match, the last one counts. So rules about folders
//! come before those about what is in them, and those about protected paths come last.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::quote::{quoted, spellings};
use crate::boundary::{Boundary, Network, UnixSockets};
use crate::error::SandboxError;

/// What every program needs, and what reaches neither files, nor hosts, nor other processes.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow system-socket)
(allow mach-lookup
    (global-name "com.apple.system.opendirectoryd.libinfo")
    (global-name "com.apple.system.opendirectoryd.membership")
    (global-name "com.apple.system.notification_center")
    (global-name "com.apple.trustd.agent"))
(allow file-ioctl (subpath "/dev"))
"#;

/// Devices that every program may write.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/fd", "/dev/ptmx"];

/// Folders that hold temporary data of all programs.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/var/folders"];

/// Where names of hosts are looked up.
const RESOLVER: &str = "/private/var/run/mDNSResponder";

/// The profile of a boundary. `port` is where the proxy is reached, on a loopback address.
///
/// # Errors
/// When a path is not text on one line.
pub(crate) fn of(boundary: &Boundary, port: Option<u16>) -> Result<String, SandboxError> {
    let mut text = BASE.to_owned();
    text.push_str("(allow file-read*)\n");
    let entries = entries(boundary);
    for entry in &entries {
        let path = quoted(&entry.path)?;
        text.push_str(&match entry.access {
            Access::Write => format!("(allow file-read* file-write* (subpath {path}))\n"),
            Access::Read => {
                format!(
                    "(allow file-read* (subpath {path}))\n(deny file-write* (subpath {path}))\n"
                )
            }
            Access::Nothing => format!("(deny file-read* file-write* (subpath {path}))\n"),
        });
    }
    text.push_str(&parents(&entries)?);
    for device in DEVICES {
        text.push_str(&format!("(allow file-read* file-write* (subpath {device:?}))\n"));
    }
    text.push_str(&protected(boundary)?);
    text.push_str(&network(boundary, port)?);
    Ok(text)
}

/// What a program may do with a path and everything in it. The later one is the stricter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Write,
    Read,
    Nothing,
}

struct Entry {
    path: PathBuf,
    access: Access,
}

/// Folders before what is in them, and for one path the stricter rule last.
fn entries(boundary: &Boundary) -> Vec<Entry> {
    let mut all = Vec::new();
    let mut add = |path: &Path, access| all.push(Entry { path: real(path), access });
    for path in TEMPORARY {
        add(Path::new(path), Access::Nothing);
    }
    for mapped in &boundary.mapped {
        // Programs find the folder by a variable. What is at the path itself is not theirs.
        add(&mapped.target, Access::Nothing);
        add(&mapped.source, Access::Write);
    }
    boundary.readable.iter().for_each(|path| add(path, Access::Read));
    boundary.writable_roots().for_each(|path| add(path, Access::Write));
    boundary.hidden.iter().for_each(|path| add(path, Access::Nothing));
    all.sort_by_key(|entry| (entry.path.components().count(), entry.access));
    all
}

/// Folders around what can be read: programs look at them on the way, but do not see what else is in them.
fn parents(entries: &[Entry]) -> Result<String, SandboxError> {
    let visible = entries.iter().filter(|entry| entry.access != Access::Nothing);
    let parents: BTreeSet<&Path> =
        visible.flat_map(|entry| entry.path.ancestors().skip(1)).collect();
    let mut text = String::new();
    for parent in parents {
        text.push_str(&format!("(allow file-read-metadata (literal {}))\n", quoted(parent)?));
    }
    Ok(text)
}

/// Protected paths cannot be changed or created, also by another spelling, and what leads to them cannot be replaced.
fn protected(boundary: &Boundary) -> Result<String, SandboxError> {
    let mut text = String::new();
    let mut fixed = BTreeSet::new();
    for root in boundary.writable_roots() {
        fixed.insert(real(root));
    }
    for protected in &boundary.protected {
        let path = real(&protected.path);
        text.push_str(&format!("(deny file-write* (subpath {}))\n", quoted(&path)?));
        text.push_str(&format!("(deny file-write* (regex #\"^{}(/|$)\"))\n", spellings(&path)));
        let is_between =
            |parent: &&Path| boundary.writable_roots().any(|root| parent.starts_with(real(root)));
        fixed.extend(path.ancestors().skip(1).filter(is_between).map(Path::to_owned));
    }
    for path in fixed {
        text.push_str(&format!(
            "(deny file-write-create file-write-unlink (literal {}))\n\
             (deny file-write-create file-write-unlink (regex #\"^{}$\"))\n",
            quoted(&path)?,
            spellings(&path)
        ));
    }
    Ok(text)
}

fn network(boundary: &Boundary, port: Option<u16>) -> Result<String, SandboxError> {
    let mut text = match (&boundary.network, port) {
        (Network::Host, _) => format!(
            "(allow network-outbound (remote ip))\n(allow network-bind network-inbound (local ip))\n\
             (allow network-outbound (literal {RESOLVER:?}))\n"
        ),
        (Network::Proxy(_) | Network::UserProxy(_), Some(port)) => {
            format!("(allow network-outbound (remote ip \"localhost:{port}\"))\n")
        }
        (Network::None | Network::Proxy(_) | Network::UserProxy(_), _) => String::new(),
    };
    match &boundary.unix_sockets {
        UnixSockets::None => {}
        UnixSockets::These(sockets) => {
            for socket in sockets {
                let socket = quoted(&real(socket))?;
                text.push_str(&format!("(allow network-outbound (literal {socket}))\n"));
            }
        }
        UnixSockets::All => text.push_str(
            "(allow network-outbound (remote unix-socket))\n(allow network-bind (local unix-socket))\n",
        ),
    }
    Ok(text)
}

/// The path that the kernel compares: three folders of macOS are links.
fn real(path: &Path) -> PathBuf {
    let is_link = ["/tmp", "/var", "/etc"].iter().any(|link| path.starts_with(link));
    match (is_link, path.strip_prefix("/")) {
        (true, Ok(rest)) => Path::new("/private").join(rest),
        _ => path.to_owned(),
    }
}
