//! What a sandbox is built with, besides its boundary.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How to build a sandbox, besides its boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Which program builds it.
    pub backend: BackendChoice,
    /// The image of containers, which must be on this machine.
    pub container_image: Option<String>,
    /// Where bubblewrap is, if not where packages install it.
    pub bubblewrap: Option<PathBuf>,
    /// Whether to accept a weaker sandbox: without the kernel's rules about files, and as root if root starts it and the
    /// file system cannot show files to another user.
    pub accept_weaker: bool,
    /// Whether programs inside may create user namespaces, which lets them reach more of the kernel.
    pub user_namespaces: bool,
}

/// Which program builds sandboxes. If it is not available, there is no sandbox: no other one takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendChoice {
    /// The one for this system: bubblewrap on Linux, the system's own on macOS.
    #[default]
    Auto,
    /// `bwrap`, on Linux.
    Bubblewrap,
    /// Containers of podman, on Linux.
    Podman,
    /// Containers of docker, on Linux.
    Docker,
    /// `sandbox-exec`, on macOS.
    Seatbelt,
}
