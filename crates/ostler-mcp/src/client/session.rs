//! One connection to a server: pending requests, and the task that reads.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::Error;
use super::dispatch::Dispatcher;
use super::link::{Arrival, Carrier, Ended, Incoming, Link};
use super::listen::Watched;
use super::options::{CallOptions, ClientOptions, Event, Progress};
use crate::rpc;

/// A connection. Dropping it ends everything that belongs to it.
pub(super) struct Session {
    outgoing: mpsc::Sender<Value>,
    shared: Arc<Shared>,
    reader: Carrier,
    /// Taken when the session is closed gracefully.
    carrier: Mutex<Option<Carrier>>,
    /// Asks a server without sessions for its notifications.
    listener: OnceLock<Carrier>,
}

/// Shared by the reading task and the callers.
pub(super) struct Shared {
    pub(super) server: String,
    pub(super) options: ClientOptions,
    pending: Mutex<Pending>,
    /// The tool list of the manifest, until the server announces a change.
    pub(super) known_tools: Mutex<Option<Value>>,
    /// What every request says about this client, if the server has no sessions (MCP 2026-07-28).
    metadata: OnceLock<Map<String, Value>>,
    /// The least important log messages that such a server is asked to send.
    log_level: Mutex<Option<String>>,
    /// The tools that can be called only as tasks.
    pub(super) task_tools: Mutex<HashSet<String>>,
    /// The resources whose changes such a server is asked to report.
    pub(super) watched: Watched,
}

#[derive(Default)]
struct Pending {
    next_id: u64,
    waiting: HashMap<u64, Waiting>,
    /// Set once, when the connection has ended.
    closed: Option<Error>,
    /// Set by a request that did not reach the server or was refused for lack of authentication, until a later one is
    /// answered.
    trouble: Option<Error>,
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    options: CallOptions,
    /// Notified by every report of progress.
    progress: Arc<Notify>,
}

/// A request that was begun.
pub(super) struct Begun {
    pub(super) id: u64,
    pub(super) answer: oneshot::Receiver<Answer>,
    progress: Arc<Notify>,
}

/// How a request ends.
pub(super) enum Answer {
    Result(Value),
    /// A JSON-RPC error.
    Refused(Value),
    /// The server did not accept the request.
    Undelivered(Error),
}

impl Session {
    pub(super) fn new(server: &str, options: &ClientOptions, link: Link) -> Self {
        let known_tools =
            options.manifest.as_ref().and_then(|manifest| manifest.get("toolsListResult").cloned());
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            options: options.clone(),
            pending: Mutex::default(),
            known_tools: Mutex::new(known_tools),
            metadata: OnceLock::new(),
            log_level: Mutex::default(),
            task_tools: Mutex::default(),
            watched: Watched::default(),
        });
        let Link { outgoing, incoming, carrier } = link;
        // Weak, so that the reading task does not keep the connection open.
        let reader = Carrier::spawn(read(Arc::clone(&shared), outgoing.downgrade(), incoming));
        let (carrier, listener) = (Mutex::new(carrier), OnceLock::new());
        Self { outgoing, shared, reader, carrier, listener }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Sends this with every request from now on: the server has no sessions that remember it.
    pub(super) fn describe_client(&self, metadata: Map<String, Value>) {
        self.shared.metadata.set(metadata).ok();
    }

    /// Runs a task that needs the connection but does not keep it open.
    pub(super) fn keep_listening<F>(&self, task: impl FnOnce(mpsc::WeakSender<Value>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.listener.get_or_init(|| Carrier::spawn(task(self.outgoing.downgrade())));
    }

    /// Why the connection ended, if it did; otherwise what is wrong with the server, if something is.
    pub(super) fn problem(&self) -> Option<Error> {
        let pending = self.shared.pending();
        pending.closed.clone().or_else(|| pending.trouble.clone())
    }

    /// Sends one message and waits for its answer. `what` is for error messages.
    pub(super) async fn exchange(
        &self,
        what: &str,
        method: &str,
        mut params: Value,
        options: CallOptions,
    ) -> Result<Value, Error> {
        let (limit, most) = (options.timeout, options.most);
        let cancellation = options.cancellation.clone();
        let Begun { id, mut answer, progress } = self.shared.begin(options)?;
        let mut abandoned = Abandoned { session: self, id, reason: "the caller gave up" };
        if let Some(meta) = params.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.insert("progressToken".to_owned(), id.into());
        }
        let message = request(id, method, self.shared.with_metadata(params));
        let exchange = async {
            tokio::select! {
                biased;
                // Before anything is sent, only the end of the connection can arrive.
                answer = &mut answer => return answer,
                _ = self.outgoing.send(message) => {}
            }
            answer.await
        };
        let timed_out = timeout(limit, most, &progress);
        let cancelled = async {
            match &cancellation {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let (server, what) = (self.shared.server.clone(), what.to_owned());
        tokio::select! {
            biased;
            answer = exchange => match answer {
                Ok(Answer::Result(result)) => Ok(result),
                Ok(Answer::Refused(error)) => Err(refused(server, what, &error)),
                Ok(Answer::Undelivered(error)) => Err(error),
                Err(_) => Err(self.shared.gone()),
            },
            () = cancelled => {
                abandoned.reason = "the call was cancelled";
                Err(Error::Cancelled { server, what })
            }
            after = timed_out => {
                abandoned.reason = "the request timed out";
                Err(Error::TimedOut { server, what, after })
            }
        }
    }

    /// Sends a request whose answer does not matter, unless too many messages wait already.
    pub(super) fn try_request(&self, method: &str, params: Value) {
        if let Ok(Begun { id, .. }) = self.shared.begin(CallOptions::default()) {
            self.shared.forget(id);
            let message = request(id, method, self.shared.with_metadata(params));
            self.outgoing.try_send(message).ok();
        }
    }

    /// Sends a notification unless too many messages wait already.
    pub(super) fn try_notify(&self, method: &str) {
        self.outgoing.try_send(rpc::notification(method, None)).ok();
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str) {
        self.outgoing.send(rpc::notification(method, None)).await.ok();
    }

    /// Closes the connection and waits for its end, which is forced after a timeout.
    pub(super) async fn close(&self) {
        self.shared.close(Ended::new("it was closed"));
        self.reader.stop();
        let carrier = self.carrier.lock().take();
        if let Some(carrier) = carrier {
            carrier.finish().await;
        }
    }
}

/// Waits until a request has taken too long. Progress begins the limit again if there is a limit for the whole, `most`.
/// Returns the limit that was reached.
async fn timeout(limit: Option<Duration>, most: Option<Duration>, progress: &Notify) -> Duration {
    let Some(limit) = limit else { return std::future::pending().await };
    let begun = Instant::now();
    // A limit that is too long for the clock has no effect.
    let at = |after: Duration| begun.checked_add(after).unwrap_or(begun + A_CENTURY);
    let most = most.map_or(limit, |most| most.max(limit));
    let mut end = at(limit);
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(end) => {
                return if end >= at(most) { most } else { limit };
            }
            () = progress.notified(), if end < at(most) => {
                let next = Instant::now().checked_add(limit).unwrap_or(end);
                end = next.min(at(most));
            }
        }
    }
}

/// Longer than any request.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "id": id, "method": method}),
        params => json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
    }
}

fn refused(server: String, what: String, error: &Value) -> Error {
    let message = match error.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => error.to_string(),
    };
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    Error::Refused { server, what, code, message, data: error.get("data").cloned().map(Box::new) }
}

/// A pending request. If it is dropped before its answer arrives, the server is notified.
struct Abandoned<'a> {
    session: &'a Session,
    id: u64,
    reason: &'static str,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if self.session.shared.pending().waiting.remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": self.reason});
            let message = rpc::notification("notifications/cancelled", Some(params));
            // Not awaited: without it the server only wastes time.
            self.session.outgoing.try_send(message).ok();
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock()
    }

    /// Whether the server has no sessions (MCP 2026-07-28).
    pub(super) fn is_stateless(&self) -> bool {
        self.metadata.get().is_some()
    }

    /// Has a server without sessions send log messages of this level and above with the answers to later requests.
    pub(super) fn set_log_level(&self, level: &str) {
        *self.log_level.lock() = Some(level.to_owned());
    }

    /// Forgets a request: its answer is no longer awaited.
    pub(super) fn forget(&self, id: u64) {
        self.pending().waiting.remove(&id);
    }

    pub(super) fn with_metadata(&self, mut params: Value) -> Value {
        let Some(metadata) = self.metadata.get() else { return params };
        if params.is_null() {
            params = json!({});
        }
        if let Some(params) = params.as_object_mut() {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.extend(metadata.clone());
                if let Some(level) = &*self.log_level.lock() {
                    meta.insert("io.modelcontextprotocol/logLevel".to_owned(), json!(level));
                }
            }
        }
        params
    }

    /// The number of a new request, and where its answer arrives.
    pub(super) fn begin(&self, options: CallOptions) -> Result<Begun, Error> {
        let (sender, answer) = oneshot::channel();
        let progress = Arc::new(Notify::new());
        let mut pending = self.pending();
        if let Some(error) = &pending.closed {
            return Err(error.clone());
        }
        let id = pending.next_id;
        pending.next_id += 1;
        let waiting = Waiting { answer: sender, options, progress: Arc::clone(&progress) };
        pending.waiting.insert(id, waiting);
        Ok(Begun { id, answer, progress })
    }

    fn gone(&self) -> Error {
        self.pending().closed.clone().unwrap_or_else(|| Error::Closed {
            server: self.server.clone(),
            reason: "the connection ended without a reason".to_owned(),
        })
    }

    /// Fails all pending requests.
    fn close(&self, ended: Ended) {
        let error = self.error(ended);
        let mut pending = self.pending();
        if pending.closed.is_none() {
            pending.closed = Some(error.clone());
            pending.waiting.clear();
            drop(pending);
            self.notify_listener(Event::Closed(error));
        }
    }

    fn error(&self, ended: Ended) -> Error {
        let server = self.server.clone();
        match ended {
            Ended::NeedsAuth(reason) => Error::NeedsAuth { server, reason },
            Ended::Unreachable(reason) => Error::Unreachable { server, reason },
            Ended::Other(reason) => Error::Closed { server, reason },
        }
    }

    pub(super) fn notify_listener(&self, event: Event) {
        if let Some(hear) = &self.options.on_event {
            // A panicking listener must not end the connection.
            catch_unwind(AssertUnwindSafe(|| hear(event))).ok();
        }
    }

    /// Passes an answer to the request that waits for it.
    pub(super) fn answered(&self, id: &Value, message: &mut Value) {
        let Some(waiting) = self.waiting(id) else { return };
        let answer = match message.get_mut("error").map(Value::take) {
            Some(error) if !error.is_null() => Answer::Refused(error),
            _ => Answer::Result(message.get_mut("result").map(Value::take).unwrap_or_default()),
        };
        self.pending().trouble = None;
        waiting.answer.send(answer).ok();
    }

    fn waiting(&self, id: &Value) -> Option<Waiting> {
        // Some servers send the number back as a string.
        let number = id.as_u64().or_else(|| id.as_str()?.parse().ok());
        self.pending().waiting.remove(&number?)
    }

    /// Fails one request; the connection continues.
    fn undelivered(&self, id: &Value, ended: Ended) {
        let Some(waiting) = self.waiting(id) else { return };
        let error = self.error(ended);
        if matches!(error, Error::NeedsAuth { .. } | Error::Unreachable { .. }) {
            self.pending().trouble = Some(error.clone());
        }
        if let Error::Unreachable { .. } = error {
            self.notify_listener(Event::Unreachable(error.clone()));
        }
        waiting.answer.send(Answer::Undelivered(error)).ok();
    }

    pub(super) fn progressed(&self, params: &Value) {
        let token = params["progressToken"].as_u64();
        let hear = token.and_then(|id| {
            let pending = self.pending();
            let waiting = pending.waiting.get(&id)?;
            waiting.progress.notify_one();
            waiting.options.on_progress.clone()
        });
        if let Some((hear, done)) = hear.zip(params["progress"].as_f64()) {
            let message = params["message"].as_str().map(str::to_owned);
            let progress = Progress { done, total: params["total"].as_f64(), message };
            catch_unwind(AssertUnwindSafe(|| hear(progress))).ok();
        }
    }
}

async fn read(shared: Arc<Shared>, outgoing: mpsc::WeakSender<Value>, mut incoming: Incoming) {
    let mut dispatcher = Dispatcher::new(Arc::clone(&shared), outgoing);
    let ended = loop {
        match incoming.next().await {
            Ok(Arrival::Message(message)) => dispatcher.handle(message),
            Ok(Arrival::Undelivered(id, ended)) => shared.undelivered(&id, ended),
            Err(ended) => break ended,
        }
    };
    shared.close(ended);
}
