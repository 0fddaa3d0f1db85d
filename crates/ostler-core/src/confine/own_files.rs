//! Names of files and folders in the server's data that no agent reads.

/// The signed-in browsers.
pub const BROWSERS: &str = "browsers.json";
/// The folders that the operator lets spaces mount.
pub(crate) const MOUNTS: &str = "mounts.json";
/// Secrets that the operator gives to spaces.
pub(crate) const SECRETS: &str = "secrets.json";
/// The memory for the agents of all spaces.
pub(crate) const SHARED_MEMORY: &str = "memory.md";
/// Folders of removed spaces.
pub(crate) const REMOVED_SPACES: &str = "gone";
/// The tokens of users for MCP servers that they signed in to.
pub(crate) const TOKENS: &str = "mcp-oauth";

/// Files in the server's folder that agents must not read: the token gives the owner's rights, and the log and the
/// engine's own files contain the conversations of all users. Agents may read the folders of runs.
pub(crate) const OWN: [&str; 10] = [
    "token",
    "users.json",
    BROWSERS,
    "log",
    "engine",
    MOUNTS,
    SECRETS,
    SHARED_MEMORY,
    REMOVED_SPACES,
    TOKENS,
];
