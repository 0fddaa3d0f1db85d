//! Starts engines: puts settings, permissions, model, tools and session files together into a running session.
//!
//! The command line and the embedded transport both start engines here, so that they cannot differ.

pub mod always;
mod connected_server;
pub mod coverage;
pub mod credentials;
mod embedded;
mod error;
mod headers_helper;
mod helper_command;
mod instructions;
pub mod judge;
mod key_helper;
mod offers;
pub mod pick;
mod recording;
pub mod rules;
pub mod sandbox;
mod server_content;
mod server_events;
pub mod server_files;
mod server_output;
mod server_pool;
mod servers;
pub mod sessions;
mod shared_server;
#[cfg(feature = "mcp-http")]
pub mod sign_in;
mod start;
mod tool_server;
mod workplace;

use std::path::PathBuf;
use std::time::Duration;

use ostler_proto::launch::Launch;
use ostler_sdk::transport::Environment;

pub use ostler_engine::model::pricing::cost as list_price;

pub use self::embedded::{Embedded, EmbeddedWithTrust};
pub use self::error::StartError;
pub use self::server_pool::{PoolLimits, ServerHosting, ServerPool};
pub use self::start::{RunningSession, start};
pub use self::tool_server::{ToolServer, tool_server};

/// Everything that an engine needs to start.
#[derive(Clone)]
#[non_exhaustive]
pub struct StartContext {
    /// The options of the command line, or the same options from the SDK.
    pub launch: Launch,
    /// The working directory. It must exist.
    pub cwd: PathBuf,
    /// The environment of the engine and of everything it starts: commands, hooks, MCP servers.
    pub env: Environment,
    /// Whether hooks run. Without them a session is good only for looking at it.
    pub runs_hooks: bool,
    /// Whether this project's settings may allow tools and run hooks; if not, they can only make things stricter.
    pub trusts_project: bool,
    /// Repositories in which `git` commands that only read run without approval, even if the project is not trusted. This
    /// does not make the settings of the project count.
    pub trusted_repositories: Vec<PathBuf>,
    /// Whether a person reads the answers at a terminal. The engine then always sends partial messages.
    pub is_interactive: bool,
    /// Whether that person sends several prompts, one after the other.
    pub is_conversation: bool,
    /// Whether the offline demo may answer if there is no key: only where a person reads the banner about it.
    pub offers_demo: bool,
    /// Whether the host can answer questions of MCP servers to the user. If not, servers are told that no user can.
    pub answers_elicitation: bool,
    /// The program that starts the engine, as the session's file names it: `cli`, `sdk-rs`.
    pub entrypoint: String,
    /// The longest time for one prompt.
    pub time_limit: Option<Duration>,
    /// The most tokens for one prompt, input and output together.
    pub token_limit: Option<u64>,
    /// What the MCP servers of a host with several users and sessions have in common.
    pub hosting: Option<ServerHosting>,
}

impl StartContext {
    /// With this process's environment, no limits, and a project that is not trusted.
    pub fn new(launch: Launch, cwd: impl Into<PathBuf>) -> Self {
        Self {
            launch,
            cwd: cwd.into(),
            env: Environment::default(),
            runs_hooks: true,
            trusts_project: false,
            trusted_repositories: Vec::new(),
            is_interactive: false,
            is_conversation: false,
            offers_demo: false,
            answers_elicitation: true,
            entrypoint: "sdk-rs".to_owned(),
            time_limit: None,
            token_limit: None,
            hosting: None,
        }
    }

    /// The value of an environment variable; `None` if it is not set or empty.
    pub(crate) fn var(&self, name: &str) -> Option<String> {
        self.env.get(name).filter(|value| !value.is_empty())
    }
}
