//! The network that the programs of a sandbox share: one of them can reach a server that another one started on a loopback
//! address. It has no other interface, so nothing else can be reached.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::spec::{NETWORK, NetworkSpec};

/// A network namespace. It exists as long as this value or a program in it.
#[derive(Debug)]
pub(super) struct SharedNetwork {
    network: File,
    /// The user namespace that it belongs to; `None` if root made it.
    user: Option<File>,
}

impl SharedNetwork {
    /// Makes one by a process that enters it and then is not needed any more.
    pub(super) fn new(helper: &Path, is_root: bool) -> io::Result<Self> {
        let mut command = Command::new(helper);
        command.arg(NETWORK).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let made = (|| {
            let mut line = String::new();
            let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
            BufReader::new(stdout).read_line(&mut line)?;
            if line.trim_end() != "ready" {
                return Err(io::Error::other("the kernel does not let this user make a network"));
            }
            let folder = PathBuf::from(format!("/proc/{}/ns", child.id()));
            let user = (!is_root).then(|| File::open(folder.join("user"))).transpose()?;
            Ok(Self { network: File::open(folder.join("net"))?, user })
        })();
        drop(child.stdin.take());
        child.wait()?;
        made
    }

    /// What a helper needs to enter it, while this process lives.
    pub(super) fn spec(&self) -> NetworkSpec {
        let path = |file: &File| -> PathBuf {
            format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
        };
        NetworkSpec { user: self.user.as_ref().map(path), network: path(&self.network) }
    }
}
