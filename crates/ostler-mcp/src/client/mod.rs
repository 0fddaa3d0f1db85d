//! A client for MCP servers.
//!
//! [`Client`] is the interface. Below it, a session (`session.rs`) matches answers to requests over a link
//! (`link.rs`), which is carried by a program (`stdio.rs`), by HTTP (`http.rs`, `sse.rs`) or by the caller.

#[cfg(feature = "http")]
mod bounded;
mod dispatch;
mod endpoint;
mod error;
mod http;
mod link;
mod listing;
mod options;
mod session;
#[cfg(feature = "http")]
mod sse;
mod stdio;
mod types;

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value, json};

pub use self::endpoint::{Channel, Custom, Endpoint, Program, Remote};
pub use self::error::Error;
use self::link::{Ended, Link};
pub use self::options::{CallOptions, ClientOptions, Event, Progress};
use self::session::Session;
use self::stdio::StderrTail;
pub use self::types::{
    PromptArgument, PromptInfo, PromptResult, ResourceTemplate, ServerDetails, Status,
    ToolAnnotations, ToolInfo,
};
use crate::output::Output;
use crate::server::VERSIONS;

/// A client of one server. Cheap to clone; clones share the connection, and the last one ends it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ostler_mcp::{CallOptions, Client, ClientOptions, Server, tool};
/// use serde_json::json;
///
/// let server = Server::new("time", "1.0.0")
///     .tool(tool("year", "Tells the year", |(): ()| async { Ok::<_, String>(1999) }));
///
/// let client = Client::connect("time", server, ClientOptions::default()).await?;
/// assert_eq!(client.list_tools().await?[0].name, "year");
/// let output = client.call_tool("year", json!({}), CallOptions::default()).await?;
/// assert_eq!(output.joined_text(), "1999");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    endpoint: Endpoint,
    options: ClientOptions,
    state: RwLock<State>,
    /// Serializes connection attempts.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
enum State {
    Pending,
    Connected(Arc<Session>, ServerDetails),
    Failed(Error),
}

impl Client {
    /// A client that is not connected yet. `name` is the server's name in the configuration.
    pub fn new(
        name: impl Into<String>,
        endpoint: impl Into<Endpoint>,
        options: ClientOptions,
    ) -> Self {
        let (state, connecting) = (RwLock::new(State::Pending), tokio::sync::Mutex::default());
        let (name, endpoint) = (name.into(), endpoint.into());
        Self { inner: Arc::new(Inner { name, endpoint, options, state, connecting }) }
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// If the server cannot be reached, or is not ready in time.
    pub async fn connect(
        name: impl Into<String>,
        endpoint: impl Into<Endpoint>,
        options: ClientOptions,
    ) -> Result<Self, Error> {
        let client = Self::new(name, endpoint, options);
        client.reconnect().await?;
        Ok(client)
    }

    /// Ends the connection, if there is one, and makes a new one.
    ///
    /// # Errors
    /// If the server cannot be reached, or is not ready in time. [`Client::status`] reports the same afterwards.
    pub async fn reconnect(&self) -> Result<(), Error> {
        let _one_at_a_time = self.inner.connecting.lock().await;
        close(self.replace(State::Pending)).await;
        let (limit, stderr) = (self.inner.options.startup_timeout, StderrTail::default());
        let result = tokio::time::timeout(limit, self.open(stderr.clone())).await;
        let result = result.unwrap_or_else(|_| {
            let reason = stderr.after(format!("it was not ready after {limit:?}"));
            Err(Error::Unreachable { server: self.inner.name.clone(), reason })
        });
        match result {
            Ok((session, details)) => {
                self.replace(State::Connected(Arc::new(session), details));
                Ok(())
            }
            Err(error) => {
                self.replace(State::Failed(error.clone()));
                Err(error)
            }
        }
    }

    /// Ends the connection. A program gets some time to end by itself.
    pub async fn close(&self) {
        let _one_at_a_time = self.inner.connecting.lock().await;
        let (server, reason) = (self.inner.name.clone(), "it was closed".to_owned());
        close(self.replace(State::Failed(Error::Closed { server, reason }))).await;
    }

    /// The server's name in the configuration.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The state of the connection.
    pub fn status(&self) -> Status {
        let failed = |error: Error| match error {
            Error::NeedsAuth { .. } => Status::NeedsAuth(error.to_string()),
            _ => Status::Failed(error.to_string()),
        };
        match self.state() {
            State::Pending => Status::Pending,
            State::Failed(error) => failed(error),
            State::Connected(session, _) => session.closed().map_or(Status::Connected, failed),
        }
    }

    /// The server's answer to the last handshake, if there was one.
    pub fn details(&self) -> Option<ServerDetails> {
        match self.state() {
            State::Connected(_, details) => Some(details),
            _ => None,
        }
    }

    /// Checks that the server answers.
    ///
    /// # Errors
    /// If it does not.
    pub async fn ping(&self) -> Result<(), Error> {
        self.request("ping", "ping", Value::Null, CallOptions::default()).await.map(drop)
    }

    /// Calls a tool. A failure of the tool is part of its output; an error means that there is no output.
    ///
    /// # Errors
    /// If the server refuses the call, is gone, takes too long, or its answer is malformed.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<Output, Error> {
        let what = format!("tool \"{tool}\"");
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request(&what, "tools/call", params, options).await?;
        Output::from_value(result).map_err(|reason| self.malformed(&what, reason))
    }

    async fn request(
        &self,
        what: &str,
        method: &str,
        mut params: Value,
        mut options: CallOptions,
    ) -> Result<Value, Error> {
        let session = self.session()?;
        options.timeout = options.timeout.or(self.inner.options.request_timeout);
        if method == "tools/call" {
            params["_meta"] = std::mem::take(&mut options.meta).into();
        }
        session.request(what, method, params, options).await
    }

    fn malformed(&self, what: &str, reason: String) -> Error {
        Error::Malformed { server: self.inner.name.clone(), what: what.to_owned(), reason }
    }

    /// Whether the server announced this capability.
    fn offers(&self, capability: &str) -> bool {
        self.details().is_some_and(|details| details.capabilities.contains_key(capability))
    }

    fn session(&self) -> Result<Arc<Session>, Error> {
        let reason = match self.state() {
            State::Connected(session, _) => return Ok(session),
            State::Failed(error) => return Err(error),
            State::Pending => "it is not connected yet".to_owned(),
        };
        Err(Error::Closed { server: self.inner.name.clone(), reason })
    }

    fn state(&self) -> State {
        self.inner.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, state: State) -> State {
        let mut there = self.inner.state.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut there, state)
    }

    async fn open(&self, stderr: StderrTail) -> Result<(Session, ServerDetails), Error> {
        let Inner { name, endpoint, options, .. } = &*self.inner;
        let link = match endpoint {
            Endpoint::Stdio(program) => stdio::open(program, options.message_limit, stderr),
            #[cfg(feature = "http")]
            Endpoint::Http(remote) => http::open(remote, options.message_limit),
            #[cfg(feature = "http")]
            Endpoint::Sse(remote) => sse::open(remote, options.message_limit).await,
            #[cfg(not(feature = "http"))]
            Endpoint::Http(remote) | Endpoint::Sse(remote) => Err(Ended::new(format!(
                "`{}` cannot be reached: this program was built without MCP over HTTP; enable the feature `http` of \
                 ostler-mcp (`mcp-http` of ostler)",
                remote.url
            ))),
            Endpoint::Custom(custom) => Ok(Link::from(custom.open())),
        };
        let unreachable = |ended| match ended {
            Ended::NeedsAuth(reason) => Error::NeedsAuth { server: name.clone(), reason },
            Ended::Other(reason) => Error::Unreachable { server: name.clone(), reason },
        };
        let session = Session::new(name, options, link.map_err(unreachable)?);
        let known = options.manifest.as_ref().and_then(|known| known.get("initializeResult"));
        let answer = match (endpoint, known) {
            (Endpoint::Custom(_), Some(known)) => known.clone(),
            _ => introduce(&session, options).await?,
        };
        let malformed = |reason| self.malformed("start", reason);
        let details = ServerDetails::from_value(&answer).map_err(malformed)?;
        if !VERSIONS.contains(&details.protocol_version.as_str()) {
            let version = &details.protocol_version;
            return Err(malformed(format!("its MCP version {version} is not supported")));
        }
        Ok((session, details))
    }
}

/// The handshake.
async fn introduce(session: &Session, options: &ClientOptions) -> Result<Value, Error> {
    let mut capabilities = Map::new();
    if options.on_elicitation.is_some() {
        capabilities.insert("elicitation".to_owned(), json!({"form": {}, "url": {}}));
    }
    let (name, version) = &options.client_info;
    let params = json!({
        "protocolVersion": VERSIONS[0],
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": version},
    });
    let answer = session.request("start", "initialize", params, CallOptions::default()).await;
    let answer = answer.map_err(|error| match error {
        // The caller has not seen a connection yet.
        Error::Closed { server, reason } => Error::Unreachable { server, reason },
        error => error,
    })?;
    session.notify("notifications/initialized").await;
    Ok(answer)
}

async fn close(state: State) {
    if let State::Connected(session, _) = state {
        session.close().await;
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.status();
        formatter
            .debug_struct("Client")
            .field("name", &self.inner.name)
            .field("status", &status)
            .finish()
    }
}
