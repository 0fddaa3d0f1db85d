//! MCP servers of a session: which there are, how they are, and their tools.
//!
//! How a server is reached is a [`Connector`]'s business, so that the engine needs no MCP library. Servers connect
//! while the session starts; the first turn waits for them.

mod tool;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use ostler_proto::Extra;
use ostler_proto::control::{AskHost, McpMessage};
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::system::InitMcpServer;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::tool::McpTool;
use crate::host::{self, Host, HostCall};
use crate::tool::{AnyTool, RunFuture, ToolCx};

/// Reaches MCP servers.
pub trait Connector: Send + Sync {
    /// Connects to a server and asks for its tools. Must give up after a while.
    fn connect(&self, name: String, place: Place) -> BoxFuture<'static, Connected>;
}

/// A server, or the words why there is none.
pub type Connected = Result<Arc<dyn Server>, String>;

/// Where a server is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Place {
    /// Where its configuration says.
    Configured(McpServerConfig),
    /// Inside the host.
    InHost(HostLine),
}

/// A line to a server inside the host.
#[derive(Clone, Debug)]
pub struct HostLine {
    server: String,
    // Not the whole line to the host: whoever holds that keeps the session's frames flowing.
    calls: mpsc::Sender<HostCall>,
}

impl HostLine {
    /// Sends a JSON-RPC message; the server's answer, which for a notification means nothing.
    ///
    /// # Errors
    /// When the host does not answer, or not in the right way.
    pub async fn send(&self, message: Value) -> Result<Value, String> {
        let server_name = self.server.clone();
        let request = McpMessage { server_name, message, extra: Extra::default() };
        let reply =
            host::ask::<McpMessage>(&self.calls, AskHost::McpMessage(request), false).await?;
        Ok(reply.mcp_response.unwrap_or_default())
    }
}

/// A server that is connected.
pub trait Server: Send + Sync {
    /// Its own name and version.
    fn info(&self) -> (String, String);

    /// Its tools.
    fn tools(&self) -> Vec<ServerTool>;

    /// Why it is no longer connected, if it is not.
    fn lost(&self) -> Option<String>;

    /// Calls a tool.
    fn call(&self, tool: &str, input: Value, cx: &ToolCx) -> RunFuture;
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// Its name there.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its input.
    pub input_schema: Value,
    /// Whether it says that it changes nothing. A claim.
    pub read_only: bool,
    /// All hints, for the host.
    pub annotations: Option<Value>,
}

/// The servers of a session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Inner>);

struct Inner {
    connector: Option<Arc<dyn Connector>>,
    calls: mpsc::Sender<HostCall>,
    state: Mutex<State>,
    /// Counts changes, for whoever waits.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    // Dropping the set gives up on whatever still connects.
    connecting: JoinSet<()>,
}

struct Entry {
    config: McpServerConfig,
    how: How,
    /// Which attempt this is: an older one has nothing to say any more.
    attempt: u64,
    /// The host added it while the session ran.
    is_dynamic: bool,
}

enum How {
    Pending,
    Connected(Arc<dyn Server>),
    Failed(String),
    Disabled,
}

impl Servers {
    pub(crate) fn new(connector: Option<Arc<dyn Connector>>, host: &Host) -> Self {
        let calls = host.calls.clone();
        let (state, changed) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { connector, calls, state, changed }))
    }

    /// A list of its own for servers that only somebody in the session has.
    pub(crate) fn apart(&self) -> Self {
        let (connector, calls) = (self.0.connector.clone(), self.0.calls.clone());
        let (state, changed) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { connector, calls, state, changed }))
    }

    /// Adds a server and begins to connect; one of the same name stays as it is.
    pub(crate) fn add(&self, name: &str, config: McpServerConfig, is_dynamic: bool) {
        {
            let mut state = self.lock();
            if state.entries.contains_key(name) {
                return;
            }
            let entry = Entry { config, how: How::Pending, attempt: 0, is_dynamic };
            state.entries.insert(name.to_owned(), entry);
        }
        self.connect(name);
    }

    /// Replaces the servers that were added while the session ran; the names that came and went.
    pub(crate) fn set(
        &self,
        servers: &BTreeMap<String, McpServerConfig>,
    ) -> (Vec<String>, Vec<String>) {
        let mut removed = Vec::new();
        self.lock().entries.retain(|name, entry| {
            let stays = !entry.is_dynamic || servers.get(name) == Some(&entry.config);
            if !stays {
                removed.push(name.clone());
            }
            stays
        });
        let known: Vec<String> = self.lock().entries.keys().cloned().collect();
        let added: Vec<String> =
            servers.keys().filter(|name| !known.contains(name)).cloned().collect();
        for name in &added {
            self.add(name, servers[name].clone(), true);
        }
        (added, removed)
    }

    /// Connects anew.
    pub(crate) fn reconnect(&self, name: &str) -> Result<(), String> {
        let is_known = self.lock().entries.contains_key(name);
        is_known.then(|| self.connect(name)).ok_or_else(|| format!("Server not found: {name}"))
    }

    /// Switches a server on or off.
    pub(crate) fn toggle(&self, name: &str, is_on: bool) -> Result<(), String> {
        if is_on {
            return self.reconnect(name);
        }
        let mut state = self.lock();
        let entry =
            state.entries.get_mut(name).ok_or_else(|| format!("Server not found: {name}"))?;
        entry.attempt += 1;
        entry.how = How::Disabled;
        Ok(())
    }

    fn connect(&self, name: &str) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(name) else { return };
        entry.attempt += 1;
        let Some(connector) = &self.0.connector else {
            entry.how = How::Failed("this engine cannot reach MCP servers".to_owned());
            return;
        };
        entry.how = How::Pending;
        let place = match &entry.config {
            McpServerConfig::Sdk(_) => {
                Place::InHost(HostLine { server: name.to_owned(), calls: self.0.calls.clone() })
            }
            config => Place::Configured(config.clone()),
        };
        let connecting = connector.connect(name.to_owned(), place);
        let (attempt, name, inner) = (entry.attempt, name.to_owned(), Arc::downgrade(&self.0));
        state.connecting.spawn(async move {
            let connected = connecting.await;
            if let Some(inner) = inner.upgrade() {
                inner.connected(&name, attempt, connected);
            }
        });
        while state.connecting.try_join_next().is_some() {}
    }

    /// Waits until nobody connects any more; the tools there are then, always in the same order.
    pub(crate) async fn ready(&self) -> Vec<Arc<dyn AnyTool>> {
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(tools) = self.tools() {
                return tools;
            }
            // The sender is ours, so this does not fail.
            let _ = changed.changed().await;
        }
    }

    /// The tools, unless somebody still connects.
    fn tools(&self) -> Option<Vec<Arc<dyn AnyTool>>> {
        let state = self.lock();
        let mut tools: Vec<Arc<dyn AnyTool>> = Vec::new();
        for (name, entry) in &state.entries {
            match &entry.how {
                How::Pending => return None,
                How::Connected(server) => {
                    let mut known = server.tools();
                    known.sort_by(|one, other| one.name.cmp(&other.name));
                    let of = |tool| Arc::new(McpTool::new(name, tool, Arc::clone(server)));
                    tools.extend(known.into_iter().map(of).map(|tool| tool as Arc<dyn AnyTool>));
                }
                How::Failed(_) | How::Disabled => {}
            }
        }
        Some(tools)
    }

    /// How every server is, as `mcp_status` tells it.
    pub(crate) fn status(&self) -> Vec<Value> {
        let state = self.lock();
        state.entries.iter().map(|(name, entry)| status(name, entry)).collect()
    }

    /// The same in short, as `init` tells it.
    pub(crate) fn summary(&self) -> Vec<InitMcpServer> {
        let short = |status: Value| json!({"name": status["name"], "status": status["status"]});
        self.status()
            .into_iter()
            .filter_map(|status| serde_json::from_value(short(status)).ok())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connected(&self, name: &str, attempt: u64, connected: Connected) {
        if let Some(entry) = self.lock().entries.get_mut(name)
            && entry.attempt == attempt
        {
            entry.how = match connected {
                Ok(server) => How::Connected(server),
                Err(reason) => How::Failed(reason),
            };
        }
        self.changed.send_modify(|n| *n += 1);
    }
}

fn status(name: &str, entry: &Entry) -> Value {
    let mut status =
        json!({"name": name, "scope": if entry.is_dynamic { "dynamic" } else { "project" }});
    let failed = |status: &mut Value, reason: &str| {
        status["status"] = json!("failed");
        status["error"] = json!(reason);
    };
    match &entry.how {
        How::Pending => status["status"] = json!("pending"),
        How::Disabled => status["status"] = json!("disabled"),
        How::Failed(reason) => failed(&mut status, reason),
        How::Connected(server) => match server.lost() {
            Some(reason) => failed(&mut status, &reason),
            None => {
                let (server_name, version) = server.info();
                let tools: Vec<Value> = server
                    .tools()
                    .into_iter()
                    .map(|tool| json!({"name": tool.name, "annotations": tool.annotations.unwrap_or_else(|| json!({}))}))
                    .collect();
                status["status"] = json!("connected");
                status["serverInfo"] = json!({"name": server_name, "version": version});
                status["tools"] = json!(tools);
            }
        },
    }
    status
}
