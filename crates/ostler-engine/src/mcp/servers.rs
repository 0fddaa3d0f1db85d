//! The servers of a session: their list and their state.

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_proto::mcp::McpServerConfig;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::life::{Life, is_down};
use super::sign_in::SignIns;
use super::tool::McpTool;
use super::{Connector, KnownServer, McpToolInfo, NotConnected, Server, policy};
use crate::host_calls::Calls;
use crate::model::ToolSpec;
use crate::model::ledger::Ledger;
use crate::permissions::Permissions;
use crate::settings::ServerLists;
use crate::tool::{AnyTool as _, ServerToolPolicy};

/// The prefix of the names of plugins' servers.
const OF_PLUGIN: &str = "plugin:";

/// The servers of a session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Servers(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) connector: Option<Arc<dyn Connector>>,
    /// The settings' lists of allowed and denied servers.
    pub(super) lists: Arc<ServerLists>,
    pub(super) calls: Calls,
    /// What decides about hosts that servers reach from the sandbox.
    pub(super) permissions: Permissions,
    pub(super) ledger: Ledger,
    state: Mutex<State>,
    /// Counts changes, for waiting callers and for contexts whose tools may be outdated.
    pub(super) changed: watch::Sender<u64>,
    /// The inboxes of the clients of servers inside the host.
    pub(super) inboxes: Mutex<BTreeMap<String, mpsc::Sender<Value>>>,
    /// Users who are signing in to servers.
    pub(super) sign_ins: SignIns,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) entries: BTreeMap<String, Entry>,
    /// What was changed about tools, and whether it was reported.
    pub(super) changes: BTreeMap<String, bool>,
    // Dropping the set cancels open connection attempts.
    pub(super) tasks: JoinSet<()>,
}

pub(super) struct Entry {
    pub(super) config: McpServerConfig,
    pub(super) how: ServerState,
    /// The number of the newest attempt: the outcome of an older one is ignored.
    pub(super) attempt: u64,
    /// The attempts since the host last wanted it.
    pub(super) life: Life,
    /// The host added it while the session ran.
    is_dynamic: bool,
    /// Who configured it.
    pub(super) scope: &'static str,
    /// The handshake answers of a server inside the host.
    pub(super) manifest: Option<Value>,
    /// The server's own name and its tools when it was last connected. They are not offered, but a call of one connects
    /// the server again.
    pub(super) last_known: Option<(String, Vec<McpToolInfo>)>,
}

pub(super) enum ServerState {
    /// The first attempt runs, or one that the host wants. Turns wait for it.
    Pending,
    Connected(Arc<dyn Server>),
    /// Not connected; it is tried again.
    Down(NotConnected),
    Failed(NotConnected),
    Disabled,
}

impl Entry {
    /// Where it comes from, with the names of the wire protocol.
    pub(super) fn source(&self) -> &'static str {
        if matches!(self.config, McpServerConfig::Sdk(_)) { "sdk" } else { self.scope }
    }

    /// The server, if it is connected and answers.
    pub(super) fn up(&self) -> Option<&Arc<dyn Server>> {
        match &self.how {
            ServerState::Connected(server) if !is_down(&**server) => Some(server),
            _ => None,
        }
    }

    /// The server's own name and its tools; those of its last connection if it is down.
    fn known_tools(&self) -> Option<(String, Vec<McpToolInfo>)> {
        match &self.how {
            ServerState::Connected(server) => Some((server.info().0, server.tools())),
            ServerState::Down(_) | ServerState::Failed(_) => self.last_known.clone(),
            ServerState::Pending | ServerState::Disabled => None,
        }
    }

    /// Its tools, sorted by name, without those that its configuration denies and those that the model cannot use.
    /// `note` gets a sentence for each that was changed or left out.
    pub(super) fn tools(
        &self,
        servers: &Servers,
        name: &str,
        mut note: impl FnMut(String),
    ) -> Vec<McpTool> {
        let Some((title, mut known)) = self.known_tools() else { return Vec::new() };
        known.sort_by(|one, other| one.name.cmp(&other.name));
        let mut tools = Vec::new();
        for tool in known {
            let policy = policy::of(&self.config, &tool.name);
            if policy == ServerToolPolicy::AlwaysDeny {
                continue;
            }
            let own_name = tool.name.clone();
            match McpTool::new(servers, (name, self.source(), &title), tool, policy) {
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

    /// Whether the configuration says that its tools are always offered, or never before they are searched for.
    pub(super) fn always_load(&self) -> Option<bool> {
        match &self.config {
            McpServerConfig::Stdio(server) => server.always_load,
            McpServerConfig::Http(server)
            | McpServerConfig::Sse(server)
            | McpServerConfig::Ws(server) => server.always_load,
            // A tool of the host itself is there to be used, unless its own metadata says otherwise.
            _ => None,
        }
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
            let life = Life::default();
            let entry = Entry {
                config,
                how,
                attempt: 0,
                life,
                is_dynamic,
                scope,
                manifest,
                last_known: None,
            };
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
        self.0.note_change();
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
        self.0.note_change();
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
        let before = std::mem::replace(&mut entry.how, ServerState::Disabled);
        drop(state);
        drop(before);
        self.0.note_change();
        Ok(())
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
                ServerState::Failed(why) | ServerState::Down(why) => {
                    failed.insert(name.clone(), why.reason.clone());
                }
                ServerState::Connected(_) | ServerState::Disabled => {}
            }
        }
        Some(failed)
    }

    /// The servers that are connected and answer.
    pub(crate) fn connected(&self) -> Vec<(String, Arc<dyn Server>)> {
        let state = self.lock();
        let up = |(name, entry): (&String, &Entry)| Some((name.clone(), Arc::clone(entry.up()?)));
        state.entries.iter().filter_map(up).collect()
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
            let tools = entry.tools(self, name, drop).into_iter();
            let specs = tools.map(|tool| (name.clone(), tool.spec()));
            specs.collect::<Vec<_>>()
        };
        state.entries.iter().filter(|(_, entry)| entry.up().is_some()).flat_map(of).collect()
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
        let inboxes = self.0.inboxes.lock().clone();
        let inbox = inboxes.get(name).ok_or_else(|| format!("Server not found: {name}"))?;
        // A client that is gone needs no messages; one that does not keep up misses notifications, not answers.
        let _ = inbox.try_send(message);
        Ok(())
    }

    /// Notes that tools may have changed.
    pub(super) fn note_change(&self) {
        self.0.note_change();
    }

    /// Notifies the servers that the working directories have changed.
    pub(crate) fn folders_changed(&self) {
        self.connected().into_iter().for_each(|(_, server)| server.folders_changed());
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Inner {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn note_change(&self) {
        self.changed.send_modify(|n| *n += 1);
    }
}
