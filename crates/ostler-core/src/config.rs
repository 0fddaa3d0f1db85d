//! What the operator decides: where the server listens, where it keeps things, what its agents may do.

pub mod agui;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ostler::PermissionMode;

/// Everything the server is started with. A value that is handed down; nothing else is read from anywhere.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens. Loopback by default; another address needs [`Config::insecure_bind`].
    pub listen: SocketAddr,
    /// Whether it may listen where others can reach it, although it speaks no TLS.
    pub insecure_bind: bool,
    /// Names it is reached by, beside its own address: `agents.example.org`, with a port unless it is 80.
    pub hosts: Vec<String>,
    /// Where browsers reach it through a proxy: `https://agents.example.org`. With `https` cookies are for TLS alone.
    pub public_url: Option<String>,
    /// Whether `X-Forwarded-For` of that proxy says where requests come from. Without a proxy anybody could send it.
    pub trust_forwarded_for: bool,
    /// Whether there may be users beside the owner. Each of them can run programs as the server's own user, and so read
    /// everything that is the owner's.
    pub trust_members: bool,
    /// The AG-UI endpoint.
    pub agui: agui::Config,
    /// Where the event log, tokens and private folders are kept.
    pub data: PathBuf,
    /// Where agents work unless a request says otherwise.
    pub workspace: PathBuf,
    /// Other folders in which agents may be told to work.
    pub roots: Vec<PathBuf>,
    /// Repositories that the operator trusts: `git` commands that only read run in them without approval. Names the folders
    /// of the repositories themselves; what lies in or beside them is not trusted. Holds for the engine in this process.
    pub trusted_repositories: Vec<PathBuf>,
    /// Folders of skills, each with a `SKILL.md`.
    pub skills: Vec<PathBuf>,
    /// Where more skills come from.
    pub cms: Option<Cms>,
    /// The engine.
    pub engine: EngineChoice,
    /// Variables for it, beside those that are passed on. A key for the model is not passed on: see [`Config::key_file`].
    pub env: BTreeMap<String, String>,
    /// Names of variables of this process that are passed on, beside the usual harmless ones.
    pub pass_env: Vec<String>,
    /// A file with the key for the model, read again for every request; otherwise it is taken from [`Config::env`] or from
    /// this process's environment. Either way engines get a stand-in that is good for nothing elsewhere.
    pub key_file: Option<PathBuf>,
    /// The model, unless a skill or a request names one.
    pub model: Option<String>,
    /// The models that engines may ask, by the beginning of a name up to its version; all if empty.
    pub models: Vec<String>,
    /// Whether a request may name a model.
    pub model_by_request: bool,
    /// Settings of the operator, as JSON. They hold in every session; their deny rules in every mode.
    pub settings: Option<String>,
    /// The permission mode of sessions and tasks that name none.
    pub permission_mode: Option<PermissionMode>,
    /// Whether runs without any question may be asked for.
    pub allow_bypass: bool,
    /// Whether the MCP servers that a project names are started; they are programs of whoever wrote that.
    pub trust_project_servers: bool,
    /// Whether tools count as approved that a skill of [`Config::cms`] lists. Without it they exist, and are asked about.
    pub trust_cms: bool,
    /// Who is told when somebody is waited for.
    pub webhook: Option<Webhook>,
    /// Whether answers of hooks may be sent to addresses in the server's own network.
    pub private_callbacks: bool,
    /// How often the database is checked, and backed up if [`Config::backups`] says where to.
    pub check_every: Duration,
    /// Where backups of the database are written by a timer; the newest seven are kept. None if absent.
    pub backups: Option<PathBuf>,
    /// How long sessions are kept in which nothing happens; for ever if absent.
    pub keep_sessions: Option<Duration>,
    /// The limits.
    pub limits: Limits,
    /// What unattended runs do with questions of the agent.
    pub questions: Questions,
}

/// A system that keeps skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cms {
    /// Where its records are: `http://127.0.0.1:1337/api/skills`.
    pub url: String,
    /// The token it asks for.
    pub token: Option<String>,
}

/// A program that is told what happens.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Where it listens: `https://chat.example.org/ostler`.
    pub url: String,
    /// What its messages are signed with.
    pub secret: String,
    /// What it is told.
    pub events: Vec<WebhookEvent>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("events", &self.events).finish_non_exhaustive()
    }
}

/// What a webhook is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookEvent {
    /// Somebody is waited for.
    Waiting,
    /// A run is over.
    Ended,
}

/// The engine that runs the agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineChoice {
    /// In this process.
    #[default]
    Embedded,
    /// A program: `ostler`, or Claude Code.
    Program(PathBuf),
}

/// What the agent's questions come to when nobody is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Questions {
    /// They are asked, and wait for an answer.
    #[default]
    Ask,
    /// The agent cannot ask.
    Never,
}

/// Limits. Each one that is reached has an error of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// How many runs work at the same time; others wait in line.
    pub concurrent_runs: usize,
    /// How many may wait, of one user.
    pub waiting_runs: usize,
    /// The longest a run may take. Time spent waiting for people does not count.
    pub run: Option<Duration>,
    /// How long an engine may send nothing while nobody is asked. A tool call that is under way may take as long as the tool
    /// itself allows, and then this long.
    pub stale: Option<Duration>,
    /// How long one call of a tool may take. What subagents do is not one call.
    pub tool: Option<Duration>,
    /// How long an engine without work is kept.
    pub idle: Duration,
    /// How long an approval waits; for ever if `None`. Then it is a no.
    pub approval: Option<Duration>,
    /// How long a run that is cancelled may take to end.
    pub cancel_grace: Duration,
    /// How long this server keeps a session that it cannot renew its claim on. After a crash, other servers wait that long. A
    /// run whose claim cannot be renewed, because nothing can be written, is interrupted shortly before the end.
    pub lease: Duration,
    /// Model calls of a run.
    pub max_turns: Option<u64>,
    /// Dollars of a run.
    pub max_budget_usd: Option<f64>,
    /// Requests of one engine to the model at the same time.
    pub engine_requests: usize,
    /// Tokens that one engine may use, in and out, as the model counts them.
    pub engine_tokens: Option<u64>,
    /// Dollars that one engine may use, by the model's count and its list price.
    pub engine_usd: Option<f64>,
    /// Bytes of a request.
    pub body: usize,
    /// Event streams open at the same time.
    pub subscribers: usize,
    /// Event streams of one user.
    pub streams_per_user: usize,
    /// WebSockets of one user.
    pub sockets_per_user: usize,
    /// AG-UI runs of one user that are being told.
    pub agui_runs_per_user: usize,
    /// Engines of one user, with those that wait for people and those that are kept for the next prompt.
    pub engines_per_user: usize,
    /// Sessions of one user.
    pub sessions_per_user: usize,
    /// Requests in a second from one address to what is open to everybody; ten times as many at once.
    pub public_requests_per_second: u32,
    /// Requests of one token in a second, in the long run; ten times as many at once.
    pub requests_per_second: u32,
    /// Wrong tokens or codes from one address before it has to wait.
    pub wrong_tokens: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrent_runs: 64,
            waiting_runs: 1_000,
            run: Some(Duration::from_secs(30 * 60)),
            stale: Some(Duration::from_secs(10 * 60)),
            tool: None,
            idle: Duration::from_secs(10 * 60),
            approval: None,
            cancel_grace: Duration::from_secs(5),
            lease: Duration::from_secs(30),
            max_turns: None,
            max_budget_usd: None,
            engine_requests: 32,
            engine_tokens: None,
            engine_usd: None,
            body: 16 << 20,
            subscribers: 5_000,
            streams_per_user: 3_000,
            sockets_per_user: 200,
            agui_runs_per_user: 512,
            engines_per_user: 1_000,
            sessions_per_user: 10_000,
            public_requests_per_second: 50,
            requests_per_second: 200,
            wrong_tokens: 10,
        }
    }
}

impl Config {
    /// The defaults, with everything kept in one folder and agents at work in another.
    pub fn new(data: impl Into<PathBuf>, workspace: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8300),
            insecure_bind: false,
            hosts: Vec::new(),
            public_url: None,
            trust_forwarded_for: false,
            trust_members: false,
            agui: agui::Config::default(),
            data: data.into(),
            workspace: workspace.into(),
            roots: Vec::new(),
            trusted_repositories: Vec::new(),
            skills: Vec::new(),
            cms: None,
            engine: EngineChoice::default(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            key_file: None,
            model: None,
            models: Vec::new(),
            model_by_request: true,
            settings: None,
            permission_mode: None,
            allow_bypass: false,
            trust_project_servers: false,
            trust_cms: false,
            webhook: None,
            private_callbacks: false,
            check_every: Duration::from_secs(24 * 60 * 60),
            backups: None,
            keep_sessions: None,
            limits: Limits::default(),
            questions: Questions::default(),
        }
    }

    /// Whether a run may have this mode.
    pub fn permits(&self, mode: &PermissionMode) -> bool {
        *mode != PermissionMode::BypassPermissions || self.allow_bypass
    }
}
