//! The configuration of the AG-UI endpoint.

use std::time::Duration;

/// The configuration of the AG-UI endpoint. What its agents may do is in the server's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// What the server remembers between runs.
    pub memory: Memory,
    /// How the client is asked for approval.
    pub approvals: Approvals,
    /// What happens to a second run on a thread.
    pub busy: Busy,
    /// What happens to a run whose client disconnected.
    pub disconnect: Disconnect,
    /// How many runs may be streamed at the same time; further ones are refused.
    pub max_runs: usize,
    /// How often a keep-alive is sent while nothing happens.
    pub keep_alive: Duration,
    /// Keys of the shared state that clients cannot change.
    pub server_keys: Vec<String>,
    /// Origins of pages that may call from a browser.
    pub origins: Vec<String>,
    /// Whether events with the engine's internals are left out.
    pub quiet: bool,
    /// How long nothing must happen before calls that have not begun are assumed to wait for others.
    pub settle: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory: Memory::Thread,
            approvals: Approvals::Interrupt,
            busy: Busy::Wait(Duration::from_secs(60)),
            disconnect: Disconnect::GoOn,
            max_runs: 1_024,
            keep_alive: Duration::from_secs(15),
            server_keys: Vec::new(),
            origins: Vec::new(),
            quiet: false,
            settle: Duration::from_millis(250),
        }
    }
}
/// What the server remembers between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The agent's conversation, by thread; only new messages of the client are used.
    Thread,
    /// Nothing: every run begins with the client's messages. A turn that waits for an answer is still stored.
    None,
}

/// How the client is asked for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approvals {
    /// The run ends with an interrupt, and the next run brings the answer.
    Interrupt,
    /// The client's tool of this name is called, and its result is the answer. If the client does not offer the tool,
    /// the call is denied.
    Tool(String),
}

/// What happens to a second run on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// It waits for the first, at most this long.
    Wait(Duration),
    /// It is refused.
    Refuse,
}

/// What happens to a run whose client disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// It continues.
    GoOn,
    /// It is stopped.
    Stop,
}
