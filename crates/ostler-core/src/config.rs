//! The operator's configuration: where the server listens, where it stores data, what its agents may do.

pub mod agui;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ostler::PermissionMode;
use ostler::engine::credentials::{self, Files};
use ostler::options::Environment;

/// The whole configuration of the server. It is passed down as a value; nothing is read from elsewhere.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address at which it listens. Loopback by default; another address needs [`Config::insecure_bind`].
    pub listen: SocketAddr,
    /// Whether it may listen where other machines can reach it, although it has no TLS.
    pub insecure_bind: bool,
    /// Further host names of the server: `agents.example.org`, with a port unless it is 80.
    pub hosts: Vec<String>,
    /// The address at which browsers reach it through a proxy: `https://agents.example.org`. With `https` cookies are
    /// sent over TLS only.
    pub public_url: Option<String>,
    /// Whether `X-Forwarded-For` of that proxy names the address of the client. Without a proxy every client could send
    /// it.
    pub trust_forwarded_for: bool,
    /// Whether there may be users other than the owner. Each of them can run programs as the server's own user, and so
    /// read everything of the owner.
    pub trust_members: bool,
    /// Whether the agents of users other than the owner run in a sandbox.
    pub sandbox: SandboxChoice,
    /// The hosts that commands in that sandbox can reach.
    pub sandbox_domains: Vec<String>,
    /// The AG-UI endpoint.
    pub agui: agui::Config,
    /// The folder with the event log, tokens and private folders.
    pub data: PathBuf,
    /// The folder in which agents work by default.
    pub workspace: PathBuf,
    /// Other folders in which agents may work if a request says so.
    pub roots: Vec<PathBuf>,
    /// Repositories that the operator trusts: `git` commands that only read run in them without approval. Only these
    /// folders themselves are trusted, not folders inside or next to them. Applies to the engine in this process.
    pub trusted_repositories: Vec<PathBuf>,
    /// Folders of skills, each with a `SKILL.md`.
    pub skills: Vec<PathBuf>,
    /// The content management system with more skills.
    pub cms: Option<Cms>,
    /// The engine.
    pub engine: EngineChoice,
    /// Environment variables for the engine, in addition to those passed on. A key for the model is not passed on: see
    /// [`Config::key_file`].
    pub env: BTreeMap<String, String>,
    /// Names of further environment variables of this process to pass on, in addition to the usual harmless ones.
    pub pass_env: Vec<String>,
    /// A file with the key for the model, read again for every request. Without it, the key is that of [`Config::env`]
    /// or of this process's environment. In both cases engines get a placeholder that is useless elsewhere.
    pub key_file: Option<PathBuf>,
    /// The operator's environment, in which a login with Claude Code is looked for if there is no key; usually empty, which
    /// means no login.
    pub operator: Environment,
    /// The model, unless a skill or a request names one.
    pub model: Option<String>,
    /// The models that engines may use, as prefixes of a name without its version; all if empty.
    pub models: Vec<String>,
    /// Whether a request may choose a model.
    pub model_by_request: bool,
    /// Settings of the operator, as JSON. They apply in every session; their deny rules in every mode.
    pub settings: Option<String>,
    /// The permission mode of sessions and tasks that name none.
    pub permission_mode: Option<PermissionMode>,
    /// Whether runs may use `bypassPermissions`.
    pub allow_bypass: bool,
    /// Whether the MCP servers of a project are started. They are programs chosen by the author of the project.
    pub trust_project_servers: bool,
    /// Whether the tools that a skill of [`Config::cms`] lists count as approved. Without it they exist, and require
    /// approval.
    pub trust_cms: bool,
    /// The program that is notified when a user's answer is needed.
    pub webhook: Option<Webhook>,
    /// Whether hooks may send their results to addresses in the server's own network.
    pub private_callbacks: bool,
    /// How often the database is checked, and backed up if [`Config::backups`] is set.
    pub check_every: Duration,
    /// The folder for regular backups of the database; the newest seven stay. Without it there are no backups.
    pub backups: Option<PathBuf>,
    /// How long inactive sessions are stored; for ever if absent.
    pub keep_sessions: Option<Duration>,
    /// The limits.
    pub limits: Limits,
    /// What unattended runs do with questions of the agent.
    pub questions: Questions,
}

/// A content management system with skills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cms {
    /// The URL of its records: `http://127.0.0.1:1337/api/skills`.
    pub url: String,
    /// The token for it.
    pub token: Option<String>,
}

/// A program that receives notifications.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The URL of the program: `https://chat.example.org/ostler`.
    pub url: String,
    /// The secret that signs its messages.
    pub secret: String,
    /// The events to send.
    pub events: Vec<WebhookEvent>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("events", &self.events).finish_non_exhaustive()
    }
}

/// An event for a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookEvent {
    /// A run waits for a user's answer.
    Waiting,
    /// A run ended.
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

/// Whether the agents of users other than the owner run in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxChoice {
    /// They do if this machine has what it takes; without a sandbox such users require [`Config::trust_members`].
    #[default]
    Auto,
    /// They do, or the server does not start.
    Required,
    /// They do not.
    Off,
}

/// What happens to the agent's questions in unattended runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Questions {
    /// They are asked, and wait for an answer.
    #[default]
    Ask,
    /// The agent cannot ask.
    Never,
}

/// Limits. Each has its own error.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// How many runs work at the same time; further runs are queued.
    pub concurrent_runs: usize,
    /// How many runs of one user may be queued.
    pub waiting_runs: usize,
    /// How long a run may take. Time spent waiting for users does not count.
    pub run: Option<Duration>,
    /// How long an engine may send nothing while no user is asked. A running tool call may take as long as the tool
    /// itself allows, and then this long.
    pub stale: Option<Duration>,
    /// How long one tool call may take. The work of a subagent does not count as one call.
    pub tool: Option<Duration>,
    /// How long an idle engine stays alive.
    pub idle: Duration,
    /// How long an approval waits before it is denied; for ever if `None`.
    pub approval: Option<Duration>,
    /// How long a cancelled run may take to end.
    pub cancel_grace: Duration,
    /// How long a lease on a session lasts without renewal. After a crash, other servers wait that long. A run whose
    /// lease cannot be renewed, because nothing can be written, is interrupted shortly before the end.
    pub lease: Duration,
    /// Model calls per run.
    pub max_turns: Option<u64>,
    /// Cost of a run, in dollars.
    pub max_budget_usd: Option<f64>,
    /// Concurrent requests of one engine to the model.
    pub engine_requests: usize,
    /// Tokens that one engine may use, input and output, as the model counts them.
    pub engine_tokens: Option<u64>,
    /// Dollars that one engine may use, by the model's token counts and list prices.
    pub engine_usd: Option<f64>,
    /// Size of a request's body, in bytes.
    pub body: usize,
    /// Event streams open at the same time.
    pub subscribers: usize,
    /// Event streams of one user.
    pub streams_per_user: usize,
    /// WebSockets of one user.
    pub sockets_per_user: usize,
    /// Open AG-UI runs of one user.
    pub agui_runs_per_user: usize,
    /// Engines of one user, including those that wait for users and idle ones.
    pub engines_per_user: usize,
    /// Sessions of one user.
    pub sessions_per_user: usize,
    /// MCP servers of one user that are programs, shared by sessions or not.
    pub mcp_programs_per_user: usize,
    /// How long an MCP server that sessions share stays when none of them runs.
    pub mcp_idle: Duration,
    /// Requests per second from one address to open paths; ten times as many at once.
    pub public_requests_per_second: u32,
    /// Requests per second with one token in the long run; ten times as many at once.
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
            mcp_programs_per_user: 100,
            mcp_idle: Duration::from_secs(60),
            public_requests_per_second: 50,
            requests_per_second: 200,
            wrong_tokens: 10,
        }
    }
}

impl Config {
    /// Files with a key or a login of the operator, which agents must not read.
    pub(crate) fn secret_files(&self) -> Vec<PathBuf> {
        let Files { login, user, .. } = credentials::files(&self.operator);
        let exist = [login, user].into_iter().flatten().filter(|file| file.exists());
        self.key_file.clone().into_iter().chain(exist).collect()
    }

    /// The defaults, with one folder for data and one for agents.
    pub fn new(data: impl Into<PathBuf>, workspace: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8300),
            insecure_bind: false,
            hosts: Vec::new(),
            public_url: None,
            trust_forwarded_for: false,
            trust_members: false,
            sandbox: SandboxChoice::Auto,
            sandbox_domains: Vec::new(),
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
            operator: Environment { replaces: true, ..Environment::default() },
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
