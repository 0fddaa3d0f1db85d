//! The address of a server: a program, a URL, this program, or a channel.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::Arc;

use ostler_process::{Confine, Environment};
use ostler_proto::mcp::McpServerConfig;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::Server;

/// How to reach a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Endpoint {
    /// A program to start; messages go over its standard input and output.
    Stdio(Program),
    /// A URL with streamable HTTP.
    Http(Remote),
    /// A URL with HTTP and server-sent events, the transport of servers until 2025.
    Sse(Remote),
    /// Messages carried by the caller.
    Custom(Custom),
}

/// A program to start. No shell is involved.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// A path, or a name to look up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub env: Environment,
    /// The working directory; the current one by default.
    pub cwd: Option<PathBuf>,
    /// The boundary that it stays inside.
    pub boundary: Option<Arc<dyn Confine>>,
}

impl PartialEq for Program {
    /// Boundaries are not compared: one session has one.
    fn eq(&self, other: &Self) -> bool {
        let parts =
            |it: &Self| (it.command.clone(), it.args.clone(), it.env.clone(), it.cwd.clone());
        parts(self) == parts(other)
    }
}

impl Eq for Program {}

/// A URL with headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// The address.
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
}

/// Makes a new channel for every connection.
#[derive(Clone)]
pub struct Custom {
    open: Arc<dyn Fn() -> Channel + Send + Sync>,
}

impl Custom {
    pub(super) fn open(&self) -> Channel {
        (self.open)()
    }
}

impl Debug for Custom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Custom")
    }
}

impl Endpoint {
    /// A program and its arguments.
    pub fn program<A: Into<String>>(
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::Stdio(Program { command: command.into(), args, ..Program::default() })
    }

    /// Messages carried by the caller; `open` is called for every new connection.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ostler_mcp::Error> {
    /// use ostler_mcp::{Channel, Client, ClientOptions, Endpoint, Server};
    ///
    /// // A host's server, which could as well be reached with control requests.
    /// let connection = Server::new("calc", "1.0.0").connect();
    /// let endpoint = Endpoint::custom(move || {
    ///     let (ours, mut theirs) = Channel::pair(16);
    ///     let connection = connection.clone();
    ///     tokio::spawn(async move {
    ///         while let Some(message) = theirs.incoming.recv().await {
    ///             if let Some(answer) = connection.handle(message).await {
    ///                 theirs.outgoing.send(answer).await.ok();
    ///             }
    ///         }
    ///     });
    ///     ours
    /// });
    /// let client = Client::connect("calc", endpoint, ClientOptions::default()).await?;
    /// assert_eq!(client.details().unwrap().name, "calc");
    /// # Ok(()) }
    /// ```
    pub fn custom(open: impl Fn() -> Channel + Send + Sync + 'static) -> Self {
        Self::Custom(Custom { open: Arc::new(open) })
    }

    /// The endpoint of a configuration; `None` for a server inside the host or of an unknown type.
    pub fn from_config(config: &McpServerConfig) -> Option<Self> {
        let remote = |server: &ostler_proto::mcp::RemoteServer| Remote {
            url: server.url.clone(),
            headers: server.headers.clone().unwrap_or_default(),
        };
        match config {
            McpServerConfig::Stdio(server) => Some(Self::Stdio(Program {
                command: server.command.clone(),
                args: server.args.clone().unwrap_or_default(),
                env: server.env.clone().unwrap_or_default().into(),
                cwd: None,
                boundary: None,
            })),
            McpServerConfig::Http(server) => Some(Self::Http(remote(server))),
            McpServerConfig::Sse(server) => Some(Self::Sse(remote(server))),
            _ => None,
        }
    }
}

/// A server of this program.
impl From<Server> for Endpoint {
    fn from(server: Server) -> Self {
        Self::custom(move || {
            let (ours, theirs) = Channel::pair(64);
            tokio::spawn(serve(server.connect(), theirs));
            ours
        })
    }
}

/// Answers messages until the client is gone.
async fn serve(connection: crate::Connection, mut channel: Channel) {
    let mut running = tokio::task::JoinSet::new();
    loop {
        let answer = tokio::select! {
            biased;
            notification = connection.next_notification() => Some(notification),
            Some(answer) = running.join_next() => answer.ok().flatten(),
            message = channel.incoming.recv() => {
                let Some(message) = message else { return };
                let connection = connection.clone();
                running.spawn(async move { connection.handle(message).await });
                None
            }
        };
        if let Some(answer) = answer
            && channel.outgoing.send(answer).await.is_err()
        {
            return;
        }
    }
}

/// One end of a two-way channel for JSON messages.
#[derive(Debug)]
pub struct Channel {
    /// Messages from this end.
    pub outgoing: mpsc::Sender<Value>,
    /// Messages from the other end.
    pub incoming: mpsc::Receiver<Value>,
}

impl Channel {
    /// Both ends of a channel that holds at most `capacity` messages in each direction.
    pub fn pair(capacity: usize) -> (Self, Self) {
        let (one_out, other_in) = mpsc::channel(capacity);
        let (other_out, one_in) = mpsc::channel(capacity);
        (
            Self { outgoing: one_out, incoming: one_in },
            Self { outgoing: other_out, incoming: other_in },
        )
    }
}
