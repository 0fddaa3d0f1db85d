//! The engine, wired: settings, permissions, model, tools and session files made into a running session.
//!
//! The command line and the embedded transport both start engines here, so that they cannot differ.

pub mod always;
pub mod coverage;
mod embedded;
mod error;
pub mod judge;
mod key_helper;
mod offers;
pub mod pick;
mod recording;
pub mod rules;
mod server_files;
mod server_output;
mod servers;
pub mod sessions;
mod start;

use std::path::PathBuf;
use std::time::Duration;

use ostler_proto::launch::Launch;
use ostler_sdk::transport::Environment;

pub use ostler_engine::model::pricing::cost as list_price;

pub use self::embedded::{Embedded, EmbeddedWithTrust};
pub use self::error::StartError;
pub use self::start::{RunningSession, start};

/// What an engine is started with.
#[derive(Clone)]
#[non_exhaustive]
pub struct StartContext {
    /// What its command line says, or would say.
    pub launch: Launch,
    /// Where it works. Must be a folder that exists.
    pub cwd: PathBuf,
    /// The environment, also of everything that it starts: commands, hooks, MCP servers.
    pub env: Environment,
    /// Whether this project's settings may allow tools and run hooks; if not, they can only make things stricter.
    pub trusts_project: bool,
    /// Repositories in which `git` commands that only read run without approval, also if the project is not trusted: the
    /// project's settings do not count because of that.
    pub trusted_repositories: Vec<PathBuf>,
    /// Whether a person is at the other end: events of responses are wanted in any case.
    pub is_interactive: bool,
    /// Whether that person writes one prompt after the other.
    pub is_conversation: bool,
    /// Who starts it, for the session's file: `cli`, `sdk-rs`.
    pub entrypoint: String,
    /// The longest time for one prompt.
    pub time_limit: Option<Duration>,
    /// The most tokens for one prompt, in and out.
    pub token_limit: Option<u64>,
}

impl StartContext {
    /// A launch in a folder, with this process's environment.
    pub fn new(launch: Launch, cwd: impl Into<PathBuf>) -> Self {
        Self {
            launch,
            cwd: cwd.into(),
            env: Environment::default(),
            trusts_project: false,
            trusted_repositories: Vec::new(),
            is_interactive: false,
            is_conversation: false,
            entrypoint: "sdk-rs".to_owned(),
            time_limit: None,
            token_limit: None,
        }
    }

    /// A variable that says something.
    pub(crate) fn var(&self, name: &str) -> Option<String> {
        self.env.get(name).filter(|value| !value.is_empty())
    }
}
