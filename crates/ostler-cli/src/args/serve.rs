//! The options of `ostler serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ostler_server::config::SandboxChoice;

use super::time;

/// When agents of users other than the owner run in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SandboxArg {
    /// If this machine has what it takes
    Auto,
    /// Always; without a sandbox the server does not start
    Required,
    /// Never
    Off,
}

impl From<SandboxArg> for SandboxChoice {
    fn from(chosen: SandboxArg) -> Self {
        match chosen {
            SandboxArg::Auto => Self::Auto,
            SandboxArg::Required => Self::Required,
            SandboxArg::Off => Self::Off,
        }
    }
}

/// `ostler serve`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Serve {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8300", env = "OSTLER_LISTEN")]
    pub(crate) listen: SocketAddr,

    /// The folder for the event log, tokens and users
    #[arg(long, value_name = "DIR", env = "OSTLER_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// An additional folder in which agents may work. If it is a git repository, git commands that only read need no
    /// approval there
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,

    /// A folder of skills
    #[arg(long, value_name = "DIR")]
    pub(crate) skills: Vec<PathBuf>,

    /// The URL of a content management system with more skills, such as http://127.0.0.1:1337/api/skills; its token is
    /// OSTLER_CMS_TOKEN
    #[arg(long, value_name = "URL")]
    pub(crate) cms: Option<String>,

    /// Notify this URL when a run waits for a user; signed with OSTLER_WEBHOOK_SECRET
    #[arg(long, value_name = "URL", env = "OSTLER_WEBHOOK")]
    pub(crate) webhook: Option<String>,

    /// Which notifications to send to the webhook
    #[arg(
        long,
        value_name = "EVENT",
        value_enum,
        value_delimiter = ',',
        default_value = "waiting",
        requires = "webhook"
    )]
    pub(crate) webhook_events: Vec<WebhookEvent>,

    /// Allow hooks to send their answers to addresses in this network
    #[arg(long)]
    pub(crate) allow_private_callbacks: bool,

    /// A program that runs the agents instead of the built-in engine: ostler, or Claude Code
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) engine: Option<PathBuf>,

    /// A file with the model's API key, read again for every request; without it, the environment must have the key
    #[arg(long, value_name = "FILE", env = "OSTLER_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Another environment variable that agents' commands receive, in addition to the usual harmless ones
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// The model of sessions that do not name one, or `offline-demo`
    #[arg(id = "serve_model", long = "model", value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Maximum number of model calls in one run
    #[arg(id = "serve_max_turns", long = "max-turns", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_turns: Option<u64>,

    /// Maximum amount to spend in one run, in dollars
    #[arg(id = "serve_max_budget_usd", long = "max-budget-usd", value_name = "USD")]
    pub(crate) max_budget_usd: Option<f64>,

    /// Users cannot choose another model
    #[arg(long)]
    pub(crate) fixed_model: bool,

    /// Let skills of the content management system approve tools beforehand
    #[arg(long)]
    pub(crate) trust_cms: bool,

    /// Let runs use the mode bypassPermissions
    #[arg(long)]
    pub(crate) allow_bypass: bool,

    /// Do not let agents ask questions
    #[arg(long)]
    pub(crate) no_questions: bool,

    /// Maximum number of runs that work at the same time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub(crate) max_runs: usize,

    /// Time limit of a run, such as 30m; time spent waiting for users does not count
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) run_timeout: Option<Duration>,

    /// Time limit of one tool call; unlimited by default
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) tool_timeout: Option<Duration>,

    /// End a run whose agent sends nothing for this long, such as 10m; a running tool counts as activity
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) stale_timeout: Option<Duration>,

    /// Maximum number of input and output tokens that one agent may use
    #[arg(long, value_name = "N")]
    pub(crate) engine_tokens: Option<u64>,

    /// Maximum amount that one agent may spend, in dollars by the list price
    #[arg(long, value_name = "USD")]
    pub(crate) engine_usd: Option<f64>,

    /// A model that agents may use; all models by default
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_model: Vec<String>,

    /// How long an idle agent is kept running
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) idle_timeout: Option<Duration>,

    /// Back up the database into this folder every night; the newest seven backups are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) backups: Option<PathBuf>,

    /// Delete sessions without activity for this long, such as 90d; by default they are never deleted
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) keep_sessions: Option<Duration>,

    /// Deny a permission request that is not answered for this long; by default it waits forever
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) approval_timeout: Option<Duration>,

    /// A host name by which a proxy reaches this server, with the port unless it is the default one
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// The address at which browsers reach this server through a proxy with TLS
    #[arg(long, value_name = "URL", env = "OSTLER_PUBLIC_URL")]
    pub(crate) public_url: Option<String>,

    /// Use the proxy's X-Forwarded-For header to count requests per address
    #[arg(long)]
    pub(crate) trust_forwarded_for: bool,

    /// Allow users other than the owner without a sandbox, although each of them can run programs as this system user and
    /// read all files of the owner
    #[arg(long)]
    pub(crate) trust_members: bool,

    /// Whether agents of users other than the owner run in a sandbox: if this machine has what it takes (bubblewrap),
    /// always (or the server does not start), or never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = SandboxArg::Auto)]
    pub(crate) sandbox: SandboxArg,

    /// A host that commands in that sandbox can reach: example.com, *.example.com, 127.0.0.1:8080. With it, users are not asked
    /// about other hosts
    #[arg(long, value_name = "HOST")]
    pub(crate) sandbox_domain: Vec<String>,

    /// Maximum number of agents per user, including waiting and idle ones
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = at_least_one)]
    pub(crate) max_engines_per_user: usize,

    /// Maximum number of sessions per user
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    pub(crate) max_sessions_per_user: usize,

    /// The origin of a page on another host that may use the AG-UI endpoint
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) agui_origin: Vec<String>,

    /// Listen on an address that other machines can reach, although the server does not use TLS
    #[arg(long)]
    pub(crate) insecure_bind: bool,

    /// Print the owner's token
    #[arg(long)]
    pub(crate) show_token: bool,

    /// Print a code that signs one browser in
    #[arg(long)]
    pub(crate) show_code: bool,

    /// The format of the log
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,

    /// Write more details to the log
    #[arg(long)]
    pub(crate) verbose_log: bool,
}

/// When a webhook is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WebhookEvent {
    /// A run waits for a user
    Waiting,
    /// A run is over
    Ended,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "write a whole number from 1 up".to_owned())
}
