//! The options of `ostler serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::time;

/// How the server is started.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Serve {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8300", env = "OSTLER_LISTEN")]
    pub(crate) listen: SocketAddr,

    /// Where to keep the event log, tokens and users
    #[arg(long, value_name = "DIR", env = "OSTLER_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// Another folder in which agents may work. If it is a git repository, git commands that only read need no approval there
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,

    /// A folder of skills
    #[arg(long, value_name = "DIR")]
    pub(crate) skills: Vec<PathBuf>,

    /// A system with more skills, such as http://127.0.0.1:1337/api/skills; its token is OSTLER_CMS_TOKEN
    #[arg(long, value_name = "URL")]
    pub(crate) cms: Option<String>,

    /// Tell this address when somebody is waited for; signed with OSTLER_WEBHOOK_SECRET
    #[arg(long, value_name = "URL", env = "OSTLER_WEBHOOK")]
    pub(crate) webhook: Option<String>,

    /// What to tell it
    #[arg(
        long,
        value_name = "EVENT",
        value_enum,
        value_delimiter = ',',
        default_value = "waiting",
        requires = "webhook"
    )]
    pub(crate) webhook_events: Vec<WebhookEvent>,

    /// Let answers of hooks be sent to addresses in this network
    #[arg(long)]
    pub(crate) allow_private_callbacks: bool,

    /// A program to run agents with, instead of the engine inside: ostler, or Claude Code
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) engine: Option<PathBuf>,

    /// A file with the key for the model, read again for every request; otherwise the environment has it
    #[arg(long, value_name = "FILE", env = "OSTLER_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Another variable of this environment that agents' commands get to see, beside the usual harmless ones
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,

    /// The model of sessions that name none, or `offline-demo`
    #[arg(id = "serve_model", long = "model", value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// The most model calls of one run
    #[arg(id = "serve_max_turns", long = "max-turns", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_turns: Option<u64>,

    /// The most dollars to spend in one run
    #[arg(id = "serve_max_budget_usd", long = "max-budget-usd", value_name = "USD")]
    pub(crate) max_budget_usd: Option<f64>,

    /// Only the operator chooses the model
    #[arg(long)]
    pub(crate) fixed_model: bool,

    /// Let skills of the content management system approve tools beforehand
    #[arg(long)]
    pub(crate) trust_cms: bool,

    /// Let runs ask for permission to do everything without approval
    #[arg(long)]
    pub(crate) allow_bypass: bool,

    /// Agents cannot ask questions
    #[arg(long)]
    pub(crate) no_questions: bool,

    /// How many runs work at the same time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub(crate) max_runs: usize,

    /// The longest a run may take, such as 30m; time spent waiting for people does not count
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) run_timeout: Option<Duration>,

    /// How long one call of a tool may take; it is not limited by default
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) tool_timeout: Option<Duration>,

    /// How long an agent may send nothing before its run ends, such as 10m; a tool at work counts as alive
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) stale_timeout: Option<Duration>,

    /// The most tokens, in and out, that one agent may use
    #[arg(long, value_name = "N")]
    pub(crate) engine_tokens: Option<u64>,

    /// The most dollars, by the list price, that one agent may use
    #[arg(long, value_name = "USD")]
    pub(crate) engine_usd: Option<f64>,

    /// A model that agents may ask; all of them by default
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_model: Vec<String>,

    /// How long an agent without work is kept
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) idle_timeout: Option<Duration>,

    /// Back up the database into this folder every night; the newest seven backups are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) backups: Option<PathBuf>,

    /// Delete sessions in which nothing happened for this long, such as 90d; they are kept for ever by default
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) keep_sessions: Option<Duration>,

    /// How long a permission request waits before it is a no; for ever by default
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) approval_timeout: Option<Duration>,

    /// A name by which a proxy reaches this server, with its port unless it is the usual one
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// The address at which browsers reach this server through a proxy with TLS
    #[arg(long, value_name = "URL", env = "OSTLER_PUBLIC_URL")]
    pub(crate) public_url: Option<String>,

    /// Believe the proxy's X-Forwarded-For when requests are counted per address
    #[arg(long)]
    pub(crate) trust_forwarded_for: bool,

    /// Allow more users than the owner, although each can run programs as this user and read all that is the owner's
    #[arg(long)]
    pub(crate) trust_members: bool,

    /// How many agents one user may have, with those that wait and those that are kept for the next prompt
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = at_least_one)]
    pub(crate) max_engines_per_user: usize,

    /// How many sessions one user may have
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    pub(crate) max_sessions_per_user: usize,

    /// The origin of a page elsewhere that may use the AG-UI endpoint
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) agui_origin: Vec<String>,

    /// Listen where others can reach it, although it speaks no TLS
    #[arg(long)]
    pub(crate) insecure_bind: bool,

    /// Print the owner's token
    #[arg(long)]
    pub(crate) show_token: bool,

    /// Print a code with which one browser comes in
    #[arg(long)]
    pub(crate) show_code: bool,

    /// How to write the log
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,

    /// Write more of it
    #[arg(long)]
    pub(crate) verbose_log: bool,
}

/// What a webhook is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WebhookEvent {
    /// Somebody is waited for
    Waiting,
    /// A run is over
    Ended,
}

/// How the log is written.
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
        .ok_or_else(|| "it is a number from 1 on".to_owned())
}
