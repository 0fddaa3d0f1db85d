//! How the endpoint behaves.

use std::sync::Arc;
use std::time::Duration;

use ostler::Options;

/// Who a session is for: what its agent works with depends on that.
pub type OptionsFor = Arc<dyn Fn(&str) -> Options + Send + Sync>;

/// How the endpoint behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct Config {
    /// What agents work with, by caller.
    pub options: OptionsFor,
    /// What is remembered between runs.
    pub memory: Memory,
    /// How the client is asked for a yes.
    pub approvals: Approvals,
    /// What happens to a second run on a thread.
    pub busy: Busy,
    /// What happens to a run whose client has gone.
    pub disconnect: Disconnect,
    /// How long a run may take; it is stopped then.
    pub run_limit: Duration,
    /// How many runs there are at once.
    pub max_runs: usize,
    /// How many threads a caller may have; the ones that rest longest are forgotten for new ones.
    pub max_threads_per_caller: usize,
    /// How long a thread may rest before its engine is let go. One that waits for an answer is kept.
    pub idle_limit: Duration,
    /// How long a thread that waits for an answer is kept.
    pub waiting_limit: Option<Duration>,
    /// How often a sign of life is sent while nothing happens.
    pub keep_alive: Duration,
    /// The largest request.
    pub max_body: usize,
    /// Keys of the shared state that clients cannot change.
    pub server_keys: Vec<String>,
    /// Models that a client may ask for in `forwardedProps.model`.
    pub models: Vec<String>,
    /// Origins of pages that may call from a browser.
    pub origins: Vec<String>,
    /// What the engine says about itself is left out.
    pub quiet: bool,
    /// For how long nothing must happen before calls that have not begun are taken to be waiting for others.
    pub settle: Duration,
}

impl Config {
    /// The defaults, for agents that work with these options.
    pub fn new(options: impl Fn(&str) -> Options + Send + Sync + 'static) -> Self {
        Self {
            options: Arc::new(options),
            memory: Memory::Thread,
            approvals: Approvals::Interrupt,
            busy: Busy::Wait(Duration::from_secs(60)),
            disconnect: Disconnect::GoOn,
            run_limit: Duration::from_secs(60 * 60),
            max_runs: 256,
            max_threads_per_caller: 1_000,
            idle_limit: Duration::from_secs(20 * 60),
            waiting_limit: None,
            keep_alive: Duration::from_secs(15),
            max_body: 32 * 1024 * 1024,
            server_keys: Vec::new(),
            models: Vec::new(),
            origins: Vec::new(),
            quiet: false,
            settle: Duration::from_millis(250),
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("memory", &self.memory).finish_non_exhaustive()
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
