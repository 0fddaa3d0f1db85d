//! The folder `/dev` of a sandbox: the devices that every program needs, terminals of its own, and shared memory of its own.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::fs::{CWD, Mode, chmodat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount as mount_at};

use super::mounts::{Folder, copy};
use crate::sys;

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 6] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("/proc/kcore", "core"),
    ("pts/ptmx", "ptmx"),
];

/// Copies of the devices, before something covers them.
pub(super) fn copies() -> Result<Vec<OwnedFd>, Errno> {
    DEVICES.iter().map(|name| copy(CWD, &Path::new("/dev").join(name))).collect()
}

/// Mounts the folder.
pub(super) fn mount(root: &Folder, devices: Vec<OwnedFd>) -> io::Result<()> {
    let folder = Path::new("/dev");
    root.mount_temporary(folder, 0o755)?;
    for (device, name) in devices.iter().zip(DEVICES) {
        sys::restrict_device(device.as_fd())?;
        root.mount_tree(device, &folder.join(name))?;
    }
    let opened = root.folder(folder)?;
    for (target, name) in LINKS {
        symlinkat(target, &opened, name)?;
    }
    let memory = root.folder(&folder.join("shm"))?;
    chmodat(&opened, "shm", Mode::from_raw_mode(0o1777), AtFlags::empty())?;
    drop(memory);
    let terminals = root.folder(&folder.join("pts"))?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    Ok(mount_at("devpts", sys::path_of(terminals.as_fd()), "devpts", flags, Some(options))?)
}
