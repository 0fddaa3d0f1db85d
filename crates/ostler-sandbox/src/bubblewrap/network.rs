//! The network that the programs of a sandbox share: one of them can reach a server that another one started on a loopback
//! address. It has no other interface, so nothing else can be reached.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use super::namespace;
use crate::spec::{NETWORK, NetworkSpec};

/// A network namespace. It exists as long as this value or a program in it.
#[derive(Debug)]
pub(super) struct SharedNetwork {
    network: File,
    /// The user namespace that it belongs to; `None` if root made it.
    user: Option<File>,
}

impl SharedNetwork {
    /// Makes one.
    pub(super) fn new(helper: &Path, is_root: bool) -> io::Result<Self> {
        namespace::take(helper, NETWORK, |process| {
            let open = |name: &str| File::open(process.join("ns").join(name));
            let user = (!is_root).then(|| open("user")).transpose()?;
            Ok(Self { network: open("net")?, user })
        })
    }

    /// What a helper needs to enter it, while this process lives.
    pub(super) fn spec(&self) -> NetworkSpec {
        let path = |file: &File| -> PathBuf {
            format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
        };
        NetworkSpec { user: self.user.as_ref().map(path), network: path(&self.network) }
    }
}
