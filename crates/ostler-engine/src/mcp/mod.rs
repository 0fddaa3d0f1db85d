//! MCP servers of a session: their list, their state, and their tools.
//!
//! A [`Connector`] connects to servers, so that the engine needs no MCP library. Servers connect while the session
//! starts; the first turn waits for them. `servers.rs` is the list, `life.rs` connects and connects again, `offer.rs`
//! decides what the model sees of the servers.

mod instructions;
mod life;
mod line;
mod offer;
mod policy;
mod prompts;
mod resources;
mod retry;
mod schema;
mod search;
mod servers;
mod sign_in;
mod status;
mod tool;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_proto::api::ContentBlock;
use ostler_proto::control::ResourceContents;
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::tool::McpResource;
use serde_json::Value;

pub use self::line::HostLine;
pub(crate) use self::offer::{Announced, offer};
pub use self::retry::Retry;
pub(crate) use self::search::SearchMode;
pub(crate) use self::servers::Servers;
use self::servers::{Entry, Inner, ServerState};
pub use self::sign_in::StartedSignIn;
pub(crate) use self::tool::{for_people, server_text, tools_of};
use crate::tool::{RunFuture, ToolCx};

/// Connects to MCP servers.
pub trait Connector: Send + Sync {
    /// Connects to a server and asks for its tools. Must give up after a while. Through the line, the server's
    /// questions to the user reach the host.
    fn connect(
        &self,
        name: String,
        place: ServerLocation,
        line: HostLine,
    ) -> BoxFuture<'static, Connected>;

    /// When a server that is down is tried again.
    fn retry(&self) -> Retry {
        Retry::default()
    }

    /// Begins to sign the user in to a server.
    fn sign_in(
        &self,
        name: String,
        _config: McpServerConfig,
    ) -> BoxFuture<'static, Result<StartedSignIn, String>> {
        async move { Err(format!("signing in to {name} is not supported")) }.boxed()
    }

    /// Deletes what signing in left behind.
    fn sign_out(
        &self,
        name: String,
        _config: McpServerConfig,
    ) -> BoxFuture<'static, Result<(), String>> {
        async move { Err(format!("signing out of {name} is not supported")) }.boxed()
    }
}

/// A server, or why it is not connected.
pub type Connected = Result<Arc<dyn Server>, NotConnected>;

/// Why a server is not connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotConnected {
    /// The reason, as text for users.
    pub reason: String,
    /// Whether the user has to log in first.
    pub needs_auth: bool,
    /// Whether the server may be reachable later: nothing was found at its address.
    pub may_recover: bool,
}

impl<S: Into<String>> From<S> for NotConnected {
    fn from(reason: S) -> Self {
        Self { reason: reason.into(), needs_auth: false, may_recover: false }
    }
}

/// Where a server is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerLocation {
    /// Where its configuration says.
    Configured(McpServerConfig),
    /// Inside the host.
    InHost {
        /// Its answers of the handshake, which can then be skipped: `{initializeResult, toolsListResult}`.
        manifest: Option<Value>,
        /// How long one call may take, in milliseconds.
        timeout: Option<u64>,
    },
}

/// A server that a session begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownServer {
    /// How it is reached.
    pub config: McpServerConfig,
    /// Who configured it: `dynamic` for the command line, `project` for `.mcp.json`, `user`, `local`.
    pub scope: &'static str,
    /// Why it cannot be connected at all.
    pub problem: Option<String>,
    /// The user has switched it off.
    pub is_disabled: bool,
}

impl From<McpServerConfig> for KnownServer {
    fn from(config: McpServerConfig) -> Self {
        Self { config, scope: "dynamic", problem: None, is_disabled: false }
    }
}

/// A server that is connected.
pub trait Server: Send + Sync {
    /// Its own name and version.
    fn info(&self) -> (String, String);

    /// Its tools.
    fn tools(&self) -> Vec<McpToolInfo>;

    /// Why it is no longer connected, if it is not.
    fn lost(&self) -> Option<String>;

    /// Whether that is because the user has to sign in.
    fn needs_auth(&self) -> bool {
        false
    }

    /// Ends when the connection has ended or the server no longer answers. Must not keep the connection open.
    fn ended(&self) -> BoxFuture<'static, ()> {
        std::future::pending().boxed()
    }

    /// Its instructions for the model.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Its last log messages, oldest first: `{level, logger?, message}`.
    fn log(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Notifies it that the working directories have changed.
    fn folders_changed(&self) {}

    /// Calls a tool.
    fn call(&self, tool: &str, input: Value, cx: &ToolCx) -> RunFuture;

    /// Whether it has sent that its tools or prompts changed, and they were not read again yet.
    fn is_stale(&self) -> bool {
        false
    }

    /// Has it report changes of a resource.
    fn subscribe(&self, _uri: &str) -> BoxFuture<'static, ()> {
        async {}.boxed()
    }

    /// The resources that it has reported as changed since the last call of this function.
    fn changed_resources(&self) -> Vec<String> {
        Vec::new()
    }

    /// Asks for its tools again, if it has sent that they changed.
    fn refresh(&self) -> BoxFuture<'static, ()> {
        async {}.boxed()
    }

    /// The capabilities that it declares.
    fn capabilities(&self) -> Value {
        Value::Null
    }

    /// Its resources.
    fn resources(&self) -> BoxFuture<'static, Result<Vec<McpResource>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    /// Its prompts.
    fn prompts(&self) -> Vec<ServerPrompt> {
        Vec::new()
    }

    /// A prompt with its arguments filled in: the content of all its messages.
    fn prompt(
        &self,
        name: &str,
        _arguments: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<Vec<ContentBlock>, String>> {
        let error = format!("there is no prompt {name}");
        async { Err(error) }.boxed()
    }

    /// Reads a resource.
    fn read_resource(
        &self,
        uri: &str,
    ) -> BoxFuture<'static, Result<Vec<ResourceContents>, String>> {
        let error = format!("there is no resource {uri}");
        async { Err(error) }.boxed()
    }
}

/// A tool of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpToolInfo {
    /// Its name there.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
    /// Whether the server claims that it changes nothing.
    pub read_only: bool,
    /// All hints, for the host.
    pub annotations: Option<Value>,
    /// The server's own metadata.
    pub meta: Option<Value>,
}

/// A prompt of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPrompt {
    /// Its name there.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The names of its arguments, and whether each must be given.
    pub arguments: Vec<(String, bool)>,
}
