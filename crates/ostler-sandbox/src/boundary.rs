//! What a program and everything that it starts can reach, as one value.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::Limits;

/// What a program and everything that it starts can reach. The whole file system can be read, except for what is
/// hidden; nothing can be written, except for what is writable.
///
/// Paths are absolute, with links resolved. If two entries cover a path, the one for the deeper path counts; for the same
/// path, the stricter one. What is protected stays so with everything in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boundary {
    /// Folders and files that may be written.
    pub writable: Vec<PathBuf>,
    /// Paths that stay as they are, or stay missing, also inside writable folders.
    pub protected: Vec<Protected>,
    /// Folders that look empty, and files that cannot be read.
    pub hidden: Vec<PathBuf>,
    /// Paths that can be read although they are inside hidden ones.
    pub readable: Vec<PathBuf>,
    /// Private folders that the program sees at other paths.
    pub mapped: Vec<Mapped>,
    /// Which hosts can be reached.
    pub network: Network,
    /// Which Unix sockets can be used.
    pub unix_sockets: UnixSockets,
    /// Changes to the environment that the caller gives to the program.
    pub environment: EnvironmentChanges,
    /// How much the program may use.
    pub limits: Limits,
    /// What enforces the boundary.
    pub layers: Layers,
}

impl Boundary {
    /// The folders and files that may really be written: those that are not protected as a whole.
    pub(crate) fn writable_roots(&self) -> impl Iterator<Item = &PathBuf> {
        let is_protected =
            |root: &&PathBuf| self.protected.iter().any(|it| root.starts_with(&it.path));
        self.writable.iter().filter(move |root| !is_protected(root))
    }
}

/// Changes to the environment of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentChanges {
    /// Variables that programs do not get.
    pub removed: Vec<String>,
    /// Variables that programs get in addition, or with another value.
    pub set: BTreeMap<String, String>,
}

/// A path that must not change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Protected {
    /// The path.
    pub path: PathBuf,
    /// What to keep in its place while it is missing.
    pub kind: Kind,
}

/// What a path is, and so what keeps its place while it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file. A socket keeps its place, which programs cannot read, and git ignores.
    File,
    /// A folder. An empty one keeps its place.
    Folder,
    /// A file that is read wherever it is found. A file with this text keeps its place: [`Kind::EMPTY`] or
    /// [`Kind::THIS_FOLDER`].
    Text(&'static str),
}

impl Kind {
    /// A file without text.
    pub const EMPTY: Self = Self::Text("");
    /// A file that refers to the folder that it is in.
    pub const THIS_FOLDER: Self = Self::Text(".\n");
    /// The texts of placeholders.
    #[cfg(target_os = "linux")]
    pub(crate) const TEXTS: [&str; 2] = ["", ".\n"];
}

/// A folder that the program sees at another path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Where it is.
    pub source: PathBuf,
    /// Where the program sees it.
    pub target: PathBuf,
}

/// Which hosts can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// None. The program can use loopback addresses, which belong to this sandbox alone.
    #[default]
    None,
    /// Those that a proxy lets through. The proxy listens on this Unix socket, outside the sandbox.
    Proxy(PathBuf),
    /// Those that a proxy of the user lets through, which nothing else limits. It is reached by this Unix socket.
    UserProxy(PathBuf),
    /// All, as without a sandbox.
    Host,
}

impl Network {
    /// The Unix socket of the proxy, if there is one.
    pub(crate) fn socket(&self) -> Option<&PathBuf> {
        match self {
            Self::Proxy(socket) | Self::UserProxy(socket) => Some(socket),
            Self::None | Self::Host => None,
        }
    }
}

/// Which Unix sockets can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnixSockets {
    /// None, except for pairs that a process shares with its children.
    #[default]
    None,
    /// These. Others that the program can see can be used too: the system cannot tell them apart by their path.
    These(Vec<PathBuf>),
    /// All that the program can see.
    All,
}

/// What enforces a boundary. All layers together by default: each of them stops attacks that the others let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layers {
    /// Separate views of files, processes and network (bubblewrap).
    pub namespaces: bool,
    /// The kernel's rules about files (Landlock), a second lock behind the view of files.
    pub landlock: bool,
    /// The filter of system calls (seccomp).
    pub seccomp: bool,
}

impl Layers {
    /// All of them.
    pub const ALL: Self = Self { namespaces: true, landlock: true, seccomp: true };
    /// None of them.
    pub const NONE: Self = Self { namespaces: false, landlock: false, seccomp: false };
}

impl Default for Layers {
    fn default() -> Self {
        Self::ALL
    }
}
