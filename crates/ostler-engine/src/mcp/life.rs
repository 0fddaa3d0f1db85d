//! How servers are connected, and connected again when they are lost.
//!
//! One task per attempt waits, connects, and then waits for the end of the connection. The first attempt, and one that
//! the host asks for, is awaited by turns; later ones are not, so that a server that is down delays nothing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_proto::mcp::McpServerConfig;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::servers::State;
use super::tool::{Fingerprint, fingerprint};
use super::{
    Connected, HostLine, Inner, NotConnected, Retry, Server, ServerLocation, ServerState, Servers,
};
use crate::tool::ToolError;

/// How long the lists of a server that has changed them are awaited before a request or a call continues without them.
const LIST_PATIENCE: Duration = Duration::from_secs(2);

/// The attempts to connect a server.
#[derive(Default)]
pub(super) struct Life {
    /// How many attempts there were in a row after the first one: none of them led to a connection that lasted.
    pub(super) attempts: u32,
    /// Why the last attempt failed, or the last connection ended.
    pub(super) reason: Option<String>,
    /// Whether it has been connected since the host last wanted it.
    was_connected: bool,
    /// Since when it is connected.
    since: Option<Instant>,
    /// Ends the wait before the next attempt.
    wake: Arc<Notify>,
}

/// What a call finds.
enum Found {
    Up(Arc<dyn Server>),
    /// It is being connected, or will be: the attempt with this number is next.
    Down(u64, String),
    /// It is not tried again.
    Out(String),
}

impl Servers {
    /// Connects, for the first time or because the host wants it. Turns wait for the outcome.
    pub(super) fn connect(&self, name: &str) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(name) else { return };
        let before = std::mem::replace(&mut entry.how, ServerState::Pending);
        entry.life = Life::default();
        self.0.attempt(&mut state, name, Duration::ZERO);
        drop(state);
        // The end of a connection may take a moment, and nothing waits for it under the lock.
        drop(before);
        self.0.note_change();
    }

    /// The server for a call of a tool whose definition had this fingerprint when the call was permitted. If the server
    /// is down, it is connected once more, and the call waits for that within bounds.
    ///
    /// # Errors
    /// When it is not connected, or the tool is another one by now.
    pub(super) async fn for_call(
        &self,
        name: &str,
        tool: &str,
        permitted: Fingerprint,
    ) -> Result<Arc<dyn Server>, ToolError> {
        let patience = self.0.retry().patience;
        let server = timeout(patience, self.up(name)).await.unwrap_or_else(|_| {
            let reason = match self.look(name) {
                Found::Down(_, reason) | Found::Out(reason) => format!("; before that: {reason}"),
                Found::Up(_) => String::new(),
            };
            Err(format!("it was not ready after {patience:?}{reason}"))
        });
        let server = server.map_err(|reason| {
            ToolError::Failed(format!(
                "The MCP server {name} is not connected, and connecting it again failed: {reason}"
            ))
        })?;
        if server.is_stale() {
            // A list that is not there in time is the old one, as the user has seen it.
            timeout(LIST_PATIENCE, server.refresh()).await.ok();
            self.0.note_change();
        }
        let now = server.tools().into_iter().find(|known| known.name == tool);
        match now {
            Some(now) if fingerprint(&now) == permitted => Ok(server),
            Some(_) => Err(ToolError::Refused(format!(
                "The MCP server {name} has changed the definition of {tool} since this call was permitted, so the call \
                 was not made. Read the new definition and call the tool again if it is still what you want."
            ))),
            None => Err(ToolError::Refused(format!(
                "The MCP server {name} no longer has the tool {tool}, so the call was not made."
            ))),
        }
    }

    /// Waits until a server is connected, or the next attempt has failed.
    async fn up(&self, name: &str) -> Result<Arc<dyn Server>, String> {
        let mut changed = self.0.changed.subscribe();
        let mut awaited = None;
        loop {
            changed.mark_unchanged();
            match self.look(name) {
                Found::Up(server) => return Ok(server),
                Found::Out(reason) => return Err(reason),
                Found::Down(attempt, reason) => match awaited {
                    Some(awaited) if awaited != attempt => return Err(reason),
                    Some(_) => {}
                    None => {
                        awaited = Some(attempt);
                        if let Some(entry) = self.lock().entries.get(name) {
                            entry.life.wake.notify_one();
                        }
                    }
                },
            }
            // The sender is ours, so this does not fail.
            let _ = changed.changed().await;
        }
    }

    fn look(&self, name: &str) -> Found {
        let attempt = match self.lock().entries.get(name) {
            None => return Found::Out("it was removed".to_owned()),
            Some(entry) => match &entry.how {
                ServerState::Connected(server) if !is_down(&**server) => {
                    return Found::Up(Arc::clone(server));
                }
                // Its end was not noticed yet.
                ServerState::Connected(_) => entry.attempt,
                ServerState::Pending => {
                    return Found::Down(entry.attempt, "it is still connecting".to_owned());
                }
                ServerState::Down(why) => return Found::Down(entry.attempt, why.reason.clone()),
                ServerState::Failed(why) => return Found::Out(why.reason.clone()),
                ServerState::Disabled => return Found::Out("it is switched off".to_owned()),
            },
        };
        self.0.ended(name, attempt);
        self.look_again(name)
    }

    /// What a call finds after the end of the connection was noticed.
    fn look_again(&self, name: &str) -> Found {
        match self.lock().entries.get(name).map(|entry| (&entry.how, entry.attempt)) {
            Some((ServerState::Down(why), attempt)) => Found::Down(attempt, why.reason.clone()),
            Some((ServerState::Failed(why), _)) => Found::Out(why.reason.clone()),
            _ => Found::Out("it is not connected".to_owned()),
        }
    }

    /// Reads the lists again of servers that have changed them. Waits for that within bounds; a list that comes later
    /// counts from the next request on.
    pub(crate) async fn refresh(&self) {
        let stale: Vec<_> =
            self.connected().into_iter().filter(|(_, server)| server.is_stale()).collect();
        if stale.is_empty() {
            return;
        }
        let mut reading = Vec::new();
        for (_, server) in stale {
            let (done, is_done) = tokio::sync::oneshot::channel::<()>();
            let weak = Arc::downgrade(&self.0);
            self.lock().tasks.spawn(async move {
                let refreshing = AssertUnwindSafe(server.refresh()).catch_unwind().await;
                drop((server, refreshing));
                if let Some(inner) = weak.upgrade() {
                    inner.note_change();
                }
                drop(done);
            });
            reading.push(is_done);
        }
        timeout(LIST_PATIENCE, futures::future::join_all(reading)).await.ok();
    }
}

/// Whether a connected server does not answer any more. One that requires signing in is not down.
pub(super) fn is_down(server: &dyn Server) -> bool {
    !server.needs_auth() && server.lost().is_some()
}

impl Inner {
    pub(super) fn retry(&self) -> Retry {
        self.connector.as_ref().map(|connector| connector.retry()).unwrap_or_default()
    }

    /// Begins an attempt to connect, after a wait.
    fn attempt(self: &Arc<Self>, state: &mut State, name: &str, wait: Duration) {
        let Some(entry) = state.entries.get_mut(name) else { return };
        entry.attempt += 1;
        if self.connector.is_none() {
            entry.how = ServerState::Failed("this engine cannot reach MCP servers".into());
            return;
        }
        // Checked here and not where a server is added, because every connection attempt passes here.
        if let Some(reason) = self.lists.refusal(name, &entry.config) {
            entry.how = ServerState::Failed(reason.into());
            return;
        }
        let (attempt, wake) = (entry.attempt, Arc::clone(&entry.life.wake));
        let (name, weak) = (name.to_owned(), Arc::downgrade(self));
        state.tasks.spawn(async move {
            if !wait.is_zero() {
                timeout(wait, wake.notified()).await.ok();
            }
            let connecting = weak.upgrade().and_then(|inner| inner.connecting(&name, attempt));
            let Some(connecting) = connecting else { return };
            let connected = connecting.await;
            let ended = weak.upgrade().and_then(|inner| inner.connected(&name, attempt, connected));
            let Some(ended) = ended else { return };
            ended.await;
            if let Some(inner) = weak.upgrade() {
                inner.ended(&name, attempt);
            }
        });
        while state.tasks.try_join_next().is_some() {}
    }

    /// Connects a server; `None` if a newer attempt has begun.
    fn connecting(
        self: &Arc<Self>,
        name: &str,
        attempt: u64,
    ) -> Option<BoxFuture<'static, Connected>> {
        let state = self.lock();
        let entry = state.entries.get(name).filter(|entry| entry.attempt == attempt)?;
        let place = match &entry.config {
            McpServerConfig::Sdk(sdk) => {
                let timeout = sdk.timeout.as_ref().map(|ms| ms.get().max(0.0) as u64);
                ServerLocation::InHost { manifest: entry.manifest.clone(), timeout }
            }
            config => ServerLocation::Configured(config.clone()),
        };
        drop(state);
        let (line, connector) = (HostLine::new(name, self), self.connector.clone()?);
        let name = name.to_owned();
        // A connector may come from the program around the engine. One that panics must not leave a server that
        // every turn waits for.
        let connecting = async move { connector.connect(name, place, line).await };
        let connecting = AssertUnwindSafe(connecting).catch_unwind().map(|connected| {
            connected.unwrap_or_else(|_| {
                Err("connecting to the server failed with a panic, which is a bug".into())
            })
        });
        Some(connecting.boxed())
    }

    /// Notes the outcome of an attempt. Returns the end of the connection, if there is one.
    fn connected(
        self: &Arc<Self>,
        name: &str,
        attempt: u64,
        connected: Connected,
    ) -> Option<BoxFuture<'static, ()>> {
        let mut state = self.lock();
        let entry = state.entries.get_mut(name).filter(|entry| entry.attempt == attempt)?;
        let ended = match connected {
            Ok(server) => {
                let ended = server.ended();
                entry.life.since = Some(Instant::now());
                entry.life.was_connected = true;
                entry.how = ServerState::Connected(server);
                entry.last_known = None;
                Some(ended)
            }
            Err(why) => {
                self.lost(&mut state, name, why);
                None
            }
        };
        drop(state);
        self.note_change();
        ended
    }

    /// Notes the end of a connection.
    fn ended(self: &Arc<Self>, name: &str, attempt: u64) {
        let mut state = self.lock();
        let entry = state.entries.get_mut(name).filter(|entry| entry.attempt == attempt);
        let Some(entry) = entry else { return };
        let ServerState::Connected(server) = &entry.how else { return };
        let server = Arc::clone(server);
        let reason = server.lost().unwrap_or_else(|| "the connection ended".to_owned());
        let lasted =
            entry.life.since.take().is_some_and(|since| since.elapsed() >= self.retry().stable);
        if lasted {
            entry.life.attempts = 0;
        }
        entry.last_known = Some((server.info().0, server.tools()));
        let why = NotConnected { reason, needs_auth: server.needs_auth(), may_recover: true };
        self.lost(&mut state, name, why);
        drop(state);
        // Outside of the lock: this may end a program.
        drop(server);
        self.note_change();
    }

    /// A server is not connected: it is tried again if that can help and it was not tried too often.
    fn lost(self: &Arc<Self>, state: &mut State, name: &str, why: NotConnected) {
        let retry = self.retry();
        let Some(entry) = state.entries.get_mut(name) else { return };
        let life = &mut entry.life;
        life.reason = Some(why.reason.clone());
        let most = retry.most(&entry.config);
        let can_help = !why.needs_auth && (life.was_connected || why.may_recover);
        if !can_help || most == 0 {
            entry.how = ServerState::Failed(why);
        } else if life.attempts >= most {
            let NotConnected { reason, .. } = why;
            let reason = format!(
                "{reason}; it was connected {most} times in a row without success and is not tried again until it is \
                 reconnected (mcp_reconnect)"
            );
            entry.how = ServerState::Failed(reason.into());
        } else {
            life.attempts += 1;
            let wait = retry.wait(life.attempts);
            entry.how = ServerState::Down(why);
            self.attempt(state, name, wait);
        }
    }
}
