//! What the helper is started with: its first argument, and a specification as JSON in the second.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::boundary::{Layers, Limits};

/// Makes the program restrict itself and become another one.
pub(crate) const INNER: &str = "__sandbox-inner";
/// Makes the program, which runs as root, give up that and become another one.
pub(crate) const OUTER: &str = "__sandbox-outer";
/// Makes the program wait in a user namespace of its own until its input ends.
pub(crate) const NAMESPACE: &str = "__sandbox-namespace";
/// Makes the program wait in a network of its own until its input ends.
pub(crate) const NETWORK: &str = "__sandbox-network";
/// Makes the program enter a network and become another one.
pub(crate) const JOIN: &str = "__sandbox-join";
/// Makes the program pass connections on to the proxy.
pub(crate) const BRIDGE: &str = "__sandbox-bridge";
/// The exit code if the sandbox cannot be built; the reason is on stderr. Shells do not use it.
pub(crate) const FAILED: u8 = 199;
/// The prefix of the reason.
pub(crate) const COMPLAINT: &str = "ostler sandbox: ";

/// What the inner helper restricts itself to. Paths are as it sees them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InnerSpec {
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) layers: Layers,
    /// The working directory, if it is not set already.
    pub(crate) folder: Option<PathBuf>,
    /// The socket of the proxy, if hosts can be reached.
    pub(crate) proxy: Option<PathBuf>,
    pub(crate) unix_sockets: bool,
    pub(crate) user_namespaces: bool,
    pub(crate) limits: Limits,
}

/// What the outer helper prepares while it is still root.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OuterSpec {
    /// The user and group that it becomes.
    pub(crate) id: u32,
    /// Where it puts the trees; a folder that every user can enter.
    pub(crate) stage: PathBuf,
    pub(crate) trees: Vec<Tree>,
    /// The network that it enters.
    pub(crate) network: Option<JoinSpec>,
}

/// A network to enter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JoinSpec {
    /// The user namespace that it belongs to, as a path in `/proc`; `None` for root.
    pub(crate) user: Option<PathBuf>,
    /// The network, as a path in `/proc`.
    pub(crate) network: PathBuf,
}

/// A folder or file that appears as if it belonged to the user that the helper becomes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Tree {
    pub(crate) source: PathBuf,
    /// The user namespace that maps its owner, as a path in `/proc`.
    pub(crate) namespace: PathBuf,
}
