//! What the helper is started with: its first argument, and a specification as JSON in the second.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::boundary::Layers;
use crate::limits::Limits;

/// Makes the program restrict itself and become another one.
pub(crate) const INNER: &str = "__sandbox-inner";
/// Makes the program prepare what needs rights that the sandbox does not have, and become bubblewrap.
pub(crate) const OUTER: &str = "__sandbox-outer";
/// Makes the program wait in a user namespace of its own until its input ends.
pub(crate) const NAMESPACE: &str = "__sandbox-namespace";
/// Makes the program wait in a network of its own until its input ends.
pub(crate) const NETWORK: &str = "__sandbox-network";
/// Makes the program pass connections on to the proxy.
pub(crate) const BRIDGE: &str = "__sandbox-bridge";
/// Makes the program say which build it is of.
pub(crate) const BUILD: &str = "__sandbox-build";
/// The build of this program: helpers of another one may expect another specification.
pub(crate) const OF_THIS_BUILD: &str = env!("OSTLER_SANDBOX_BUILD");
/// The exit code if the sandbox cannot be built; the reason is on stderr. Shells do not use it.
pub(crate) const FAILED: u8 = 199;

/// Where the helper is inside.
pub(crate) const HELPER: &str = "/run/ostler-sandbox-helper";

/// Where the outer helper shows to bubblewrap what the sandbox shows.
pub(crate) const STAGE: &str = "/tmp";
/// The name of the root folder there.
pub(crate) const ROOT: &str = "root";

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

/// What the outer helper prepares.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OuterSpec {
    /// The user and group that it becomes; `None` if it is not root.
    pub(crate) id: Option<u32>,
    /// The network that it enters.
    pub(crate) network: Option<NetworkSpec>,
    /// The control group that it enters, so that everything it starts is in it too.
    pub(crate) group: Option<PathBuf>,
    /// How many bytes an empty folder can hold.
    pub(crate) temporary: Option<u64>,
    /// What the sandbox shows, parents before children.
    pub(crate) mounts: Vec<Mount>,
}

/// A network to enter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NetworkSpec {
    /// The user namespace that it belongs to, as a path in `/proc`; `None` for root.
    pub(crate) user: Option<PathBuf>,
    /// The network, as a path in `/proc`.
    pub(crate) network: PathBuf,
}

/// A mount of the sandbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) target: PathBuf,
    pub(crate) what: What,
}

/// What is mounted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// A file, or a folder with everything that is mounted in it.
    Tree {
        source: PathBuf,
        /// The user namespace that shows its owner as the user that the helper becomes, as a path in `/proc`.
        owners: Option<PathBuf>,
        is_writable: bool,
    },
    /// An empty folder.
    Temporary { is_writable: bool },
    /// A file that cannot be opened.
    Nothing,
    /// What is there already, in a writable folder, so that nothing can be put in its place.
    Part { root: PathBuf, is_writable: bool },
}
