//! `ostler mcp …`: the MCP servers of the user and of the project.

use ostler::engine::server_files::Scope;

/// MCP servers: add, list, remove, sign in.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server: a program, or an address
    ///
    /// A program: ostler mcp add files -e KEY=value -- npx -y some-server --flag
    /// An address: ostler mcp add -t http tracker https://tracker.example/mcp -H "X-Key: value"
    #[command(verbatim_doc_comment)]
    Add(Box<Add>),
    /// Add a server by its configuration in JSON, as in `.mcp.json`
    AddJson {
        /// The server's name: letters, digits, - and _
        name: String,
        /// The configuration, such as {"type": "http", "url": "https://tracker.example/mcp"}
        json: String,
        /// Who has it: local, user or project
        #[arg(short, long, value_name = "SCOPE", value_enum, default_value_t = WrittenScope::Local)]
        scope: WrittenScope,
    },
    /// List the servers, connect to each, and show its state
    List,
    /// Show the configuration and the state of a server
    Get { name: String },
    /// Remove a server
    Remove {
        name: String,
        /// Where to remove it: local, user or project; needed if it is in several
        #[arg(short, long, value_name = "SCOPE", value_enum)]
        scope: Option<WrittenScope>,
    },
    /// Sign in to a server with OAuth, in a browser
    Login { name: String },
    /// Sign out of a server: its tokens are deleted
    Logout { name: String },
    /// Serve the built-in tools to other MCP clients, over standard input and output
    ///
    /// Calls are subject to the same rules, hooks and sandbox as those of a model. One that requires approval is asked
    /// through the client if it can ask its user; otherwise it does not run.
    Serve {
        /// Serve over HTTP at this address instead, such as 127.0.0.1:8801. Clients need a token: the one in the variable
        /// OSTLER_MCP_TOKEN, or one that is printed. An address that other machines can reach needs the variable
        #[arg(long, value_name = "ADDRESS")]
        http: Option<std::net::SocketAddr>,
    },
    /// Forget which servers of this project's .mcp.json were approved and rejected
    ResetProjectChoices,
}

/// `ostler mcp add`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Add {
    /// The server's name: letters, digits, - and _
    pub(crate) name: String,

    /// The program, or the address
    #[arg(value_name = "PROGRAM-OR-URL")]
    pub(crate) target: String,

    /// Arguments of the program; write -- before the program if they begin with a dash
    #[arg(value_name = "ARGUMENT")]
    pub(crate) args: Vec<String>,

    /// Who has it: local (you, in this project), user (you, everywhere) or project (all its users, in .mcp.json)
    #[arg(short, long, value_name = "SCOPE", value_enum, default_value_t = WrittenScope::Local)]
    pub(crate) scope: WrittenScope,

    /// How it is reached: stdio for a program; http, sse or ws for an address
    #[arg(short, long, value_name = "KIND", value_enum)]
    pub(crate) transport: Option<Transport>,

    /// An environment variable of the program; may be given several times
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,

    /// A header for every request to the address; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,

    /// The OAuth client id, for a server at which clients cannot register themselves
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// The port of this machine to which the browser is led back after signing in
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) callback_port: Option<u16>,
}

/// The scopes that are in a file of the user or of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WrittenScope {
    /// For you, in this project (~/.claude.json)
    Local,
    /// For you, in all projects (~/.claude.json)
    User,
    /// For all users of this project (.mcp.json)
    Project,
}

impl From<WrittenScope> for Scope {
    fn from(scope: WrittenScope) -> Self {
        match scope {
            WrittenScope::Local => Self::Local,
            WrittenScope::User => Self::User,
            WrittenScope::Project => Self::Project,
        }
    }
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Transport {
    /// A program; messages go over its standard input and output
    Stdio,
    /// An address with streamable HTTP
    Http,
    /// An address with server-sent events, the transport of older servers
    Sse,
    /// A WebSocket
    Ws,
}

impl Transport {
    /// The `type` in a configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::Ws => "ws",
        }
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match text.split_once(':') {
        Some((name, value)) if !name.is_empty() && name.chars().all(is_of_name) => {
            Ok((name.to_owned(), value.trim().to_owned()))
        }
        _ => Err("write NAME: VALUE, such as \"X-Key: abc\"".to_owned()),
    }
}
