//! What a sandbox is built with, besides its boundary.

use std::path::PathBuf;

/// How to build a sandbox, besides its boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Where bubblewrap is, if not where packages install it.
    pub bubblewrap: Option<PathBuf>,
    /// Whether to accept a weaker sandbox: without the kernel's rules about files, and as root if root starts it and the
    /// file system cannot show files to another user.
    pub accept_weaker: bool,
    /// Whether programs inside may create user namespaces, which lets them reach more of the kernel.
    pub user_namespaces: bool,
}
