//! A client for MCP servers.
//!
//! [`Client`] is the interface. Below it, a session (`session.rs`) matches answers to requests over a link
//! (`link.rs`), which is carried by a program (`stdio.rs`), by HTTP (`http.rs`, `sse.rs`) or by the caller.
//! `handshake.rs` finds the revision of MCP that the server understands; `rounds.rs` and `listen.rs` are for those
//! without sessions.

#[cfg(feature = "http")]
mod bounded;
mod dispatch;
mod elicitation;
mod endpoint;
mod error;
mod handshake;
#[cfg(feature = "http")]
mod http;
mod link;
mod listen;
mod listing;
#[cfg(feature = "http")]
mod oauth;
mod options;
#[cfg(feature = "http")]
mod raw;
#[cfg(feature = "http")]
mod renewed;
mod rounds;
mod session;
#[cfg(feature = "http")]
mod sign_in;
#[cfg(feature = "http")]
mod sse;
mod stdio;
mod tasks;
mod types;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::RwLock;
use serde_json::{Value, json};

pub use self::endpoint::{Channel, Custom, Endpoint, Program, Remote};
pub use self::error::Error;
use self::link::{Ended, Link};
#[cfg(feature = "http")]
pub use self::oauth::OAuthOptions;
pub use self::options::{CallOptions, ClientOptions, Event, Progress, Root};
use self::session::Session;
#[cfg(feature = "http")]
pub use self::sign_in::SignIn;
use self::stdio::StderrTail;
pub use self::types::{
    PromptArgument, PromptInfo, PromptResult, ResourceTemplate, ServerDetails, Status,
    ToolAnnotations, ToolInfo,
};
use crate::output::Output;

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
    /// Whether the server began a session with `initialize`. It is not asked for a newer revision again.
    has_sessions: AtomicBool,
    /// The user's account at a server with a URL; `None` inside if the configuration has a token.
    #[cfg(feature = "http")]
    account: tokio::sync::OnceCell<Option<Arc<oauth::Account>>>,
}

/// The error code of a server that wants the user to visit an address first.
const URL_ELICITATION: i64 = -32042;

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
        let inner = Inner {
            name,
            endpoint,
            options,
            state,
            connecting,
            has_sessions: AtomicBool::new(false),
            #[cfg(feature = "http")]
            account: tokio::sync::OnceCell::new(),
        };
        Self { inner: Arc::new(inner) }
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
            State::Connected(session, _) => session.problem().map_or(Status::Connected, failed),
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
        // Servers without sessions have no `ping`.
        let is_stateless = self.session()?.shared().is_stateless();
        let method = if is_stateless { "server/discover" } else { "ping" };
        self.request("ping", method, Value::Null, CallOptions::default()).await.map(drop)
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
        let result = match self.must_be_task(tool) {
            true => self.call_as_task(&what, params, options).await?,
            false => self.request_with_visits(&what, "tools/call", params, options).await?,
        };
        Output::from_value(result).map_err(|reason| self.malformed(&what, reason))
    }

    /// Sends the server's log messages of this level and above to the listener for events, as
    /// `notifications/message`.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn set_log_level(&self, level: &str) -> Result<(), Error> {
        let session = self.session()?;
        if session.shared().is_stateless() {
            session.shared().set_log_level(level);
            return Ok(());
        }
        let params = json!({"level": level});
        let options = self.brief();
        self.request("log level", "logging/setLevel", params, options).await.map(drop)
    }

    /// Has the server report changes of a resource, as `notifications/resources/updated`.
    ///
    /// # Errors
    /// If the server does not offer that, or does not answer.
    pub async fn subscribe(&self, uri: &str) -> Result<(), Error> {
        let session = self.session()?;
        if session.shared().is_stateless() {
            session.shared().watched.add(uri);
            return Ok(());
        }
        self.subscription("resources/subscribe", uri).await
    }

    /// Ends what [`Client::subscribe`] began.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), Error> {
        let session = self.session()?;
        if session.shared().is_stateless() {
            session.shared().watched.remove(uri);
            return Ok(());
        }
        self.subscription("resources/unsubscribe", uri).await
    }

    async fn subscription(&self, method: &str, uri: &str) -> Result<(), Error> {
        let what = format!("resource \"{uri}\"");
        self.request(&what, method, json!({"uri": uri}), self.brief()).await.map(drop)
    }

    /// Options for requests that a server answers at once.
    fn brief(&self) -> CallOptions {
        CallOptions::default().timeout(self.inner.options.startup_timeout)
    }

    /// Notifies the server that the folders it may work in have changed. A server without a session asks each time.
    pub fn roots_changed(&self) {
        if let State::Connected(session, _) = self.state()
            && !session.shared().is_stateless()
        {
            session.try_notify("notifications/roots/list_changed");
        }
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

    /// The same, once more if the server wants the user to visit an address first and the user agrees.
    async fn request_with_visits(
        &self,
        what: &str,
        method: &str,
        params: Value,
        options: CallOptions,
    ) -> Result<Value, Error> {
        let answer = self.request(what, method, params.clone(), options.clone()).await;
        let Err(error @ Error::Refused { code: URL_ELICITATION, data: Some(data), .. }) = &answer
        else {
            return answer;
        };
        let Inner { name, options: own, .. } = &*self.inner;
        let cancelled = async {
            match &options.cancellation {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            biased;
            () = cancelled => {
                return Err(Error::Cancelled { server: name.clone(), what: what.to_owned() });
            }
            accepted = elicitation::accepts_all(name, own, data) => accepted,
        };
        match accepted {
            Some(true) => self.request(what, method, params, options).await,
            _ => Err(error.clone()),
        }
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
        self.inner.state.read().clone()
    }

    fn replace(&self, state: State) -> State {
        let mut there = self.inner.state.write();
        std::mem::replace(&mut there, state)
    }
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
