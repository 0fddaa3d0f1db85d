//! MCP servers of a host with several sessions: one program that several sessions share, and how many programs each user
//! has.
//!
//! Sessions share a program only if its configuration says so (`shared: true`), and only if everything is equal that the
//! program could tell them apart by: see `shared_server.rs`. The program is started for the first session and ends when
//! no session has used it for a while.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::mcp::NotConnected;
use ostler_mcp::{Client, ClientOptions, Endpoint, PromptInfo, Status, ToolInfo};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::connected_server::prompts;
use super::server_events::{Listeners, ServerEvents};

/// What a host with several users gives to the engine of one session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerHosting {
    /// The servers of all sessions.
    pub pool: ServerPool,
    /// The user to whom the session belongs. Programs are counted per user.
    pub user: String,
    /// Sessions share a server only if this is equal: the user, the space, and what confines the session.
    pub identity: String,
    /// The folder for the tokens of servers that this user signed in to.
    pub tokens: PathBuf,
}

/// How long the start of a program waits for the end of another one.
const PATIENCE: Duration = Duration::from_secs(2);

impl ServerHosting {
    /// For a session of this user; see the fields.
    pub fn new(
        pool: ServerPool,
        user: impl Into<String>,
        identity: impl Into<String>,
        tokens: impl Into<PathBuf>,
    ) -> Self {
        let (user, identity, tokens) = (user.into(), identity.into(), tokens.into());
        Self { pool, user, identity, tokens }
    }
}

/// The limits of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolLimits {
    /// How long a shared program stays when no session uses it.
    pub idle: Duration,
    /// How many programs the sessions of one user may have at the same time, shared or not.
    pub programs_per_user: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60), programs_per_user: 100 }
    }
}

/// The MCP servers of all sessions of a host. Cheap to clone.
#[derive(Clone)]
pub struct ServerPool(Arc<Inner>);

struct Inner {
    limits: PoolLimits,
    state: Mutex<State>,
    /// Notified when a program has ended.
    freed: Notify,
}

#[derive(Default)]
struct State {
    /// The shared programs, by everything that must be equal.
    shared: HashMap<String, Entry>,
    /// How many programs each user has.
    programs: HashMap<String, usize>,
}

struct Entry {
    server: Arc<SharedServer>,
    user: String,
    /// How many sessions use it, or wait for it.
    users: usize,
    /// Counts how often it became unused, for the timer that ends it.
    unused: u64,
    /// Whether it ends with its last session, without the idle time.
    ends_at_once: bool,
}

/// A program that sessions share.
#[derive(Default)]
struct SharedServer {
    /// Locked while it starts, so that sessions that begin together start it once.
    state: tokio::sync::Mutex<SharedState>,
}

#[derive(Default)]
struct SharedState {
    running: Option<Running>,
    /// When the last attempt to start it failed, and why.
    failed: Option<(Instant, NotConnected)>,
}

/// A running program, as the sessions that share it see it.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) client: Client,
    pub(super) tools: Arc<RwLock<Vec<ToolInfo>>>,
    pub(super) prompts: Arc<RwLock<Vec<PromptInfo>>>,
    listeners: Arc<Listeners>,
    counted: Arc<Counted>,
}

/// One program of a user, counted until this is dropped.
pub(super) struct Counted {
    pool: ServerPool,
    user: String,
}

/// The use of a shared program by one session.
pub(super) struct Lease {
    pool: ServerPool,
    key: String,
    server: Arc<SharedServer>,
}

impl ServerPool {
    /// An empty pool.
    pub fn new(limits: PoolLimits) -> Self {
        Self(Arc::new(Inner { limits, state: Mutex::default(), freed: Notify::new() }))
    }

    /// Ends the shared programs of a user that no session uses, without waiting for the idle time. Those in use end with
    /// their last session, which may be about to end, unless another one begins before.
    pub fn end_unused_of(&self, user: &str) {
        let mut state = self.0.state.lock();
        let of_user = state.shared.values_mut().filter(|entry| entry.user == user);
        of_user.for_each(|entry| entry.ends_at_once = true);
        let gone = state.shared.extract_if(|_, entry| entry.user == user && entry.users == 0);
        let gone: Vec<Entry> = gone.map(|(_, entry)| entry).collect();
        drop(state);
        gone.into_iter().for_each(end);
    }

    /// How many programs a user has now, shared or not.
    pub fn programs_of(&self, user: &str) -> usize {
        self.0.state.lock().programs.get(user).copied().unwrap_or_default()
    }

    /// Counts one more program of a user. If the user has as many as allowed, waits a moment: one may be about to end, such
    /// as that of an engine that is replaced.
    ///
    /// # Errors
    /// When the user has as many as allowed.
    pub(super) async fn count(&self, user: &str) -> Result<Counted, String> {
        let last = Instant::now() + PATIENCE;
        loop {
            let mut freed = std::pin::pin!(self.0.freed.notified());
            // From now on, nothing is missed.
            freed.as_mut().enable();
            let counted = self.try_count(user);
            if counted.is_ok() || tokio::time::timeout_at(last, freed).await.is_err() {
                return counted;
            }
        }
    }

    fn try_count(&self, user: &str) -> Result<Counted, String> {
        let most = self.0.limits.programs_per_user;
        let mut state = self.0.state.lock();
        let count = state.programs.entry(user.to_owned()).or_default();
        if *count >= most {
            return Err(format!(
                "you have {most} MCP server programs, the maximum for one user: end sessions, or switch servers off in them"
            ));
        }
        *count += 1;
        Ok(Counted { pool: self.clone(), user: user.to_owned() })
    }

    /// Begins to use the shared program with this key, which is started when the lease is connected.
    pub(super) fn lease(&self, user: &str, key: &str) -> Lease {
        let mut state = self.0.state.lock();
        let entry = state.shared.entry(key.to_owned()).or_insert_with(|| Entry {
            server: Arc::default(),
            user: user.to_owned(),
            users: 0,
            unused: 0,
            ends_at_once: false,
        });
        entry.users += 1;
        entry.ends_at_once = false;
        Lease { pool: self.clone(), key: key.to_owned(), server: Arc::clone(&entry.server) }
    }

    fn released(&self, key: &str) {
        let mut state = self.0.state.lock();
        let Some(entry) = state.shared.get_mut(key) else { return };
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        entry.unused += 1;
        let (unused, idle) = (entry.unused, self.0.limits.idle);
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| !entry.ends_at_once);
        // Outside of a runtime nothing can wait.
        let Some(runtime) = runtime else {
            let entry = state.shared.remove(key);
            drop(state);
            return entry.into_iter().for_each(end);
        };
        let (pool, key) = (Arc::downgrade(&self.0), key.to_owned());
        runtime.spawn(async move {
            tokio::time::sleep(idle).await;
            if let Some(inner) = pool.upgrade() {
                inner.end_if_unused(&key, unused);
            }
        });
    }
}

impl Inner {
    fn end_if_unused(&self, key: &str, unused: u64) {
        let mut state = self.state.lock();
        let is_unused = |entry: &Entry| entry.users == 0 && entry.unused == unused;
        if !state.shared.get(key).is_some_and(is_unused) {
            return;
        }
        let entry = state.shared.remove(key);
        drop(state);
        entry.into_iter().for_each(end);
    }
}

/// Ends a program that is in no list any more: its input is closed first, so that it can save what it has.
fn end(entry: Entry) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        let running = entry.server.state.lock().await.running.take();
        if let Some(running) = running {
            running.client.close().await;
        }
    });
}

impl Lease {
    /// The running program; starts it if this is the first session, or if it has crashed. Sessions that wait for the same
    /// start have its outcome. `events` receives what the program reports about itself, but nothing about calls.
    ///
    /// # Errors
    /// When the program cannot be started, or its user has too many.
    pub(super) async fn connect(
        &self,
        name: &str,
        user: &str,
        options: ClientOptions,
        events: &Arc<ServerEvents>,
        endpoint: impl FnOnce() -> Result<Endpoint, String>,
    ) -> Result<Running, NotConnected> {
        let begun = Instant::now();
        let mut state = self.server.state.lock().await;
        if let Some(running) = &state.running
            && running.client.status() == Status::Connected
        {
            running.listeners.add(events);
            return Ok(running.clone());
        }
        if let Some((at, error)) = &state.failed
            && *at > begun
        {
            return Err(error.clone());
        }
        // A crashed program is counted until all its sessions have noticed, so the one in its place is not counted again.
        let counted = state.running.take().map(|crashed| crashed.counted);
        match self.start(name, (user, counted), options, endpoint).await {
            Ok(running) => {
                running.listeners.add(events);
                (state.running, state.failed) = (Some(running.clone()), None);
                Ok(running)
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    async fn start(
        &self,
        name: &str,
        (user, counted): (&str, Option<Arc<Counted>>),
        options: ClientOptions,
        endpoint: impl FnOnce() -> Result<Endpoint, String>,
    ) -> Result<Running, NotConnected> {
        let counted = match counted {
            Some(counted) => counted,
            None => Arc::new(self.pool.count(user).await?),
        };
        let listeners = Arc::new(Listeners::default());
        let heard = Arc::clone(&listeners);
        let options = options.on_event(move |event| heard.note(&event));
        let client = Client::new(name, endpoint()?, options);
        let failed = |error: ostler_mcp::Error| NotConnected::from(error.to_string());
        client.reconnect().await.map_err(failed)?;
        let tools = Arc::new(RwLock::new(client.list_tools().await.map_err(failed)?));
        let prompts = Arc::new(RwLock::new(prompts(&client).await));
        Ok(Running { client, tools, prompts, listeners, counted })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.released(&self.key);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.pool.0.state.lock();
        if let Some(count) = state.programs.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                state.programs.remove(&self.user);
            }
        }
        drop(state);
        self.pool.0.freed.notify_waiters();
    }
}

impl fmt::Debug for ServerPool {
    /// Without the keys, which contain the variables of programs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.0.state.lock().shared.len();
        f.debug_struct("ServerPool").field("shared", &shared).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
