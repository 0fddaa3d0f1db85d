//! What a call would touch. Permissions are decided on it.

use std::path::PathBuf;

/// What a call would touch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing outside the conversation.
    Nothing,
    /// Reads a file or folder.
    Read(PathBuf),
    /// Changes a file.
    Write(PathBuf),
    /// Runs a shell command in the working directory.
    Execute(String),
    /// Runs a shell command in another folder, to which an earlier command changed.
    ExecuteIn {
        /// Where relative paths start.
        folder: PathBuf,
        /// The command.
        command: String,
    },
    /// Fetches a URL.
    Fetch(String),
    /// Sends this text to a search engine.
    Search(String),
    /// Asks an MCP server to do something.
    Outside {
        /// Whether that may change anything; `false` is only the server's claim.
        changes: bool,
        /// What the server's configuration says about this tool.
        policy: ServerToolPolicy,
    },
    /// Needs the user's answer to continue.
    AskUser,
}

impl Effect {
    /// Whether calls with this effect may run in parallel.
    pub fn is_read_only(&self) -> bool {
        matches!(
            self,
            Self::Nothing
                | Self::Read(_)
                | Self::Fetch(_)
                | Self::Search(_)
                | Self::Outside { changes: false, .. }
        )
    }
}

/// What the configuration of an MCP server says about one of its tools (`tools[].permission_policy` and
/// `org_max_permission`). Holds in every permission mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerToolPolicy {
    /// The tool runs without approval, unless a rule or the mode forbids it.
    AlwaysAllow,
    /// Nothing: rules and the mode decide.
    #[default]
    Unset,
    /// The tool requires approval, also in bypassPermissions; no allow rule answers for the user.
    AlwaysAsk,
    /// The tool does not run.
    AlwaysDeny,
}
