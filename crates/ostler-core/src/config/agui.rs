//! How the endpoint behaves.

use std::time::Duration;

/// How the endpoint behaves. What its agents may do is the server's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// What is remembered between runs.
    pub memory: Memory,
    /// How the client is asked for a yes.
    pub approvals: Approvals,
    /// What happens to a second run on a thread.
    pub busy: Busy,
    /// What happens to a run whose client has gone.
    pub disconnect: Disconnect,
    /// How many runs are told at the same time; others are refused.
    pub max_runs: usize,
    /// How often a sign of life is sent while nothing happens.
    pub keep_alive: Duration,
    /// Keys of the shared state that clients cannot change.
    pub server_keys: Vec<String>,
    /// Origins of pages that may call from a browser.
    pub origins: Vec<String>,
    /// What the engine says about itself is left out.
    pub quiet: bool,
    /// For how long nothing must happen before calls that have not begun are taken to be waiting for others.
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
/// What is remembered between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The agent's own conversation, by thread; of what the client sends only the new is heard.
    Thread,
    /// Nothing: every run begins with what the client sends. A turn that waits for an answer is still kept for it.
    None,
}

/// How the client is asked for a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approvals {
    /// The run ends with an interrupt, the next one brings the answer.
    Interrupt,
    /// The client's tool of this name is called, and its result is the answer. Where the client does not offer it, the
    /// answer is no.
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

/// What happens to a run whose client has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// It goes on.
    GoOn,
    /// It is stopped.
    Stop,
}
