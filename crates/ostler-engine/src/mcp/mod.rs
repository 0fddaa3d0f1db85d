//! MCP servers of a session: their list, their state, and their tools.
//!
//! A [`Connector`] connects to servers, so that the engine needs no MCP library. Servers connect while the session
//! starts; the first turn waits for them.

mod line;
mod policy;
mod prompts;
mod resources;
mod schema;
mod sign_in;
mod status;
mod tool;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_proto::api::ContentBlock;
use ostler_proto::control::ResourceContents;
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::tool::McpResource;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub use self::line::HostLine;
use self::sign_in::SignIns;
pub use self::sign_in::StartedSignIn;
use self::tool::McpTool;
pub(crate) use self::tool::{for_people, tools_of};
use crate::host_calls::Calls;
use crate::model::ToolSpec;
use crate::model::ledger::Ledger;
use crate::permissions::Permissions;
use crate::settings::ServerLists;
use crate::tool::{AnyTool, RunFuture, ServerToolPolicy, ToolCx};

/// The prefix of the names of plugins' servers.
const OF_PLUGIN: &str = "plugin:";

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
}

impl<S: Into<String>> From<S> for NotConnected {
    fn from(reason: S) -> Self {
        Self { reason: reason.into(), needs_auth: false }
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

    /// Calls a tool.
    fn call(&self, tool: &str, input: Value, cx: &ToolCx) -> RunFuture;

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
#[derive(Clone, Debug, PartialEq)]
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

/// The servers of a session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Inner>);

struct Inner {
    connector: Option<Arc<dyn Connector>>,
    /// The settings' lists of allowed and denied servers.
    lists: Arc<ServerLists>,
    calls: Calls,
    /// What decides about hosts that servers reach from the sandbox.
    permissions: Permissions,
    ledger: Ledger,
    state: Mutex<State>,
    /// Counts changes, for waiting callers.
    changed: watch::Sender<u64>,
    /// The inboxes of the clients of servers inside the host.
    inboxes: Mutex<BTreeMap<String, mpsc::Sender<Value>>>,
    /// Users who are signing in to servers.
    sign_ins: SignIns,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    /// What was changed about tools, and whether it was reported.
    changes: BTreeMap<String, bool>,
    // Dropping the set cancels open connection attempts.
    connecting: JoinSet<()>,
}

struct Entry {
    config: McpServerConfig,
    how: ServerState,
    /// The number of the newest attempt: the outcome of an older one is ignored.
    attempt: u64,
    /// The host added it while the session ran.
    is_dynamic: bool,
    /// Who configured it.
    scope: &'static str,
    /// The handshake answers of a server inside the host.
    manifest: Option<Value>,
}

enum ServerState {
    Pending,
    Connected(Arc<dyn Server>),
    Failed(NotConnected),
    Disabled,
}

impl Entry {
    /// Where it comes from, with the names of the wire protocol.
    fn source(&self) -> &'static str {
        if matches!(self.config, McpServerConfig::Sdk(_)) { "sdk" } else { self.scope }
    }

    /// Its tools, sorted by name, without those that its configuration denies and those that the model cannot use.
    /// `note` gets a sentence for each that was changed or left out.
    fn tools(&self, name: &str, mut note: impl FnMut(String)) -> Vec<McpTool> {
        let ServerState::Connected(server) = &self.how else { return Vec::new() };
        let mut known = server.tools();
        known.sort_by(|one, other| one.name.cmp(&other.name));
        let mut tools = Vec::new();
        for tool in known {
            let policy = policy::of(&self.config, &tool.name);
            if policy == ServerToolPolicy::AlwaysDeny {
                continue;
            }
            let own_name = tool.name.clone();
            match McpTool::new(name, self.source(), tool, Arc::clone(server), policy) {
                Ok((tool, changes)) => {
                    tools.push(tool);
                    let sentence = |change| format!("the tool {own_name}: {change}");
                    changes.into_iter().map(sentence).for_each(&mut note);
                }
                Err(reason) => note(format!("the tool {own_name} is left out: {reason}")),
            }
        }
        tools
    }

    /// What was changed about its tools, and which were left out.
    fn changes(&self, name: &str) -> Vec<String> {
        let mut changes = Vec::new();
        self.tools(name, |change| changes.push(change));
        changes
    }
}

impl Servers {
    pub(crate) fn new(
        connector: Option<Arc<dyn Connector>>,
        lists: Arc<ServerLists>,
        calls: Calls,
        permissions: Permissions,
        ledger: Ledger,
    ) -> Self {
        let (state, changed, inboxes) = (Mutex::default(), watch::Sender::new(0), Mutex::default());
        let sign_ins = SignIns::default();
        Self(Arc::new(Inner {
            connector,
            lists,
            calls,
            permissions,
            ledger,
            state,
            changed,
            inboxes,
            sign_ins,
        }))
    }

    /// An empty list for servers that only one subagent has.
    pub(crate) fn apart(&self) -> Self {
        let Inner { connector, lists, calls, permissions, ledger, .. } = &*self.0;
        let (connector, lists, calls) = (connector.clone(), Arc::clone(lists), calls.clone());
        Self::new(connector, lists, calls, permissions.clone(), ledger.clone())
    }

    /// Adds a server and begins to connect; an existing one of the same name stays as it is. Returns whether it is new.
    pub(crate) fn add(&self, name: &str, known: KnownServer) -> bool {
        self.insert(name, known, None, false)
    }

    /// Adds a server inside the host, possibly with its handshake answers. Returns whether it is new.
    pub(crate) fn add_in_host(
        &self,
        name: &str,
        config: McpServerConfig,
        manifest: Option<Value>,
    ) -> bool {
        self.insert(name, config.into(), manifest, false)
    }

    fn insert(
        &self,
        name: &str,
        known: KnownServer,
        manifest: Option<Value>,
        is_dynamic: bool,
    ) -> bool {
        let KnownServer { config, scope, problem, is_disabled } = known;
        {
            let mut state = self.lock();
            if state.entries.contains_key(name) {
                return false;
            }
            let how = match &problem {
                _ if is_disabled => ServerState::Disabled,
                Some(problem) => ServerState::Failed(problem.as_str().into()),
                None => ServerState::Pending,
            };
            let entry = Entry { config, how, attempt: 0, is_dynamic, scope, manifest };
            state.entries.insert(name.to_owned(), entry);
        }
        if problem.is_none() && !is_disabled {
            self.connect(name);
        }
        true
    }

    /// Replaces the servers that were added while the session ran. Returns the added and the removed names.
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
            self.insert(name, servers[name].clone().into(), None, true);
        }
        (added, removed)
    }

    /// Takes over the servers of plugins: new ones connect, missing ones are disconnected, the others stay.
    pub(crate) fn set_plugins(&self, servers: &BTreeMap<String, McpServerConfig>) {
        self.lock().entries.retain(|name, entry| {
            !name.starts_with(OF_PLUGIN) || servers.get(name) == Some(&entry.config)
        });
        for (name, config) in servers {
            self.add(name, config.clone().into());
        }
    }

    /// Connects again.
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
        entry.how = ServerState::Disabled;
        Ok(())
    }

    fn connect(&self, name: &str) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(name) else { return };
        entry.attempt += 1;
        let Some(connector) = &self.0.connector else {
            entry.how = ServerState::Failed("this engine cannot reach MCP servers".into());
            return;
        };
        // Checked here and not where a server is added, because every connection attempt passes here.
        if let Some(reason) = self.0.lists.refusal(name, &entry.config) {
            entry.how = ServerState::Failed(reason.into());
            return;
        }
        entry.how = ServerState::Pending;
        let place = match &entry.config {
            McpServerConfig::Sdk(sdk) => {
                let timeout = sdk.timeout.as_ref().map(|ms| ms.get().max(0.0) as u64);
                ServerLocation::InHost { manifest: entry.manifest.clone(), timeout }
            }
            config => ServerLocation::Configured(config.clone()),
        };
        let line = HostLine::new(name, &self.0);
        // A connector may come from the program around the engine. One that panics must not leave a server that
        // every turn waits for.
        let connector = Arc::clone(connector);
        let server = name.to_owned();
        let connecting = async move { connector.connect(server, place, line).await };
        let connecting = AssertUnwindSafe(connecting).catch_unwind();
        let (attempt, name, inner) = (entry.attempt, name.to_owned(), Arc::downgrade(&self.0));
        state.connecting.spawn(async move {
            let connected = connecting.await.unwrap_or_else(|_| {
                Err("connecting to the server failed with a panic, which is a bug".into())
            });
            if let Some(inner) = inner.upgrade() {
                inner.connected(&name, attempt, connected);
            }
        });
        while state.connecting.try_join_next().is_some() {}
    }

    /// Waits until no server connects any more. Returns all tools, always in the same order.
    pub(crate) async fn ready(&self) -> Vec<Arc<dyn AnyTool>> {
        self.settled(|_| true).await;
        for (_, server) in self.connected() {
            server.refresh().await;
        }
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

    /// Waits until none of these servers connects any more. Returns those that failed, and why. The function that
    /// selects them must not call this type: it runs under the lock.
    pub(crate) async fn settled(
        &self,
        is_meant: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, String> {
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(failed) = self.failed(&is_meant) {
                return failed;
            }
            // The sender is ours, so this does not fail.
            let _ = changed.changed().await;
        }
    }

    fn failed(&self, is_meant: impl Fn(&str) -> bool) -> Option<BTreeMap<String, String>> {
        let mut failed = BTreeMap::new();
        for (name, entry) in self.lock().entries.iter().filter(|(name, _)| is_meant(name)) {
            match &entry.how {
                ServerState::Pending => return None,
                ServerState::Failed(why) => _ = failed.insert(name.clone(), why.reason.clone()),
                ServerState::Connected(_) | ServerState::Disabled => {}
            }
        }
        Some(failed)
    }

    /// The servers that are connected.
    pub(crate) fn connected(&self) -> Vec<(String, Arc<dyn Server>)> {
        let state = self.lock();
        let connected = state.entries.iter().filter_map(|(name, entry)| match &entry.how {
            ServerState::Connected(server) => Some((name.clone(), Arc::clone(server))),
            _ => None,
        });
        connected.collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<dyn Server>, String> {
        let connected = self.connected().into_iter().find(|(known, _)| known == name);
        connected.map(|(_, server)| server).ok_or_else(|| format!("Server not found: {name}"))
    }

    /// Whether there is a server of that name, connected or not.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.lock().entries.contains_key(name)
    }

    /// Whether a server lives inside the host.
    pub(crate) fn is_in_host(&self, name: &str) -> bool {
        let state = self.lock();
        let entry = state.entries.get(name);
        entry.is_some_and(|entry| matches!(entry.config, McpServerConfig::Sdk(_)))
    }

    /// The tools of those that are connected, as the model sees them, with the servers' names.
    pub(crate) fn specs(&self) -> Vec<(String, ToolSpec)> {
        let state = self.lock();
        let of = |(name, entry): (&String, &Entry)| {
            let tools = entry.tools(name, drop).into_iter();
            let specs = tools.map(|tool| (name.clone(), tool.spec()));
            specs.collect::<Vec<_>>()
        };
        state.entries.iter().flat_map(of).collect()
    }

    /// What was changed about tools so that the model can use them, and which were left out: each once, with the
    /// name of the server.
    pub(crate) fn new_changes(&self) -> Vec<String> {
        let mut state = self.lock();
        let new = state.changes.iter_mut().filter(|(_, is_reported)| !**is_reported);
        let report = |(change, is_reported): (&String, &mut bool)| {
            *is_reported = true;
            change.clone()
        };
        new.map(report).collect()
    }

    /// Delivers a message that a server inside the host sends by itself.
    ///
    /// # Errors
    /// When there is no such server.
    pub(crate) async fn deliver(&self, name: &str, message: Value) -> Result<(), String> {
        let inboxes = self.0.inboxes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let inbox = inboxes.get(name).ok_or_else(|| format!("Server not found: {name}"))?;
        // A client that is gone needs no messages; one that does not keep up misses notifications, not answers.
        let _ = inbox.try_send(message);
        Ok(())
    }

    /// The tools, unless a server still connects.
    fn tools(&self) -> Option<Vec<Arc<dyn AnyTool>>> {
        let mut state = self.lock();
        let State { entries, changes, .. } = &mut *state;
        let mut tools: Vec<Arc<dyn AnyTool>> = Vec::new();
        for (name, entry) in entries {
            match &entry.how {
                ServerState::Pending => return None,
                ServerState::Connected(_) => {
                    let note = |change| {
                        changes.entry(format!("MCP server {name}: {change}")).or_default();
                    };
                    let of_server = entry.tools(name, note).into_iter();
                    tools.extend(of_server.map(|tool| Arc::new(tool) as Arc<dyn AnyTool>));
                }
                ServerState::Failed(_) | ServerState::Disabled => {}
            }
        }
        drop(state);
        tools.extend(resources::tools(self));
        Some(tools)
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
                Ok(server) => ServerState::Connected(server),
                Err(reason) => ServerState::Failed(reason),
            };
        }
        self.changed.send_modify(|n| *n += 1);
    }
}
