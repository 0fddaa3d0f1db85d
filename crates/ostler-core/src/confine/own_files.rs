//! Names of files and folders in the server's data that no agent reads.

/// Which browsers are signed in.
pub const BROWSERS: &str = "browsers.json";
/// What the operator lets spaces mount.
pub(crate) const MOUNTS: &str = "mounts.json";
/// Secrets that the operator gives to spaces.
pub(crate) const SECRETS: &str = "secrets.json";
/// What agents of all spaces are told.
pub(crate) const SHARED_MEMORY: &str = "memory.md";
/// Folders of spaces that were removed.
pub(crate) const REMOVED_SPACES: &str = "gone";

/// What lies in the server's folder and is no agent's business: whoever reads the token is the owner, and the log and
/// the engine's own files have everybody's conversations. The folders of runs are theirs to read.
pub(crate) const OWN: [&str; 9] = [
    "token",
    "users.json",
    BROWSERS,
    "log",
    "engine",
    MOUNTS,
    SECRETS,
    SHARED_MEMORY,
    REMOVED_SPACES,
];
