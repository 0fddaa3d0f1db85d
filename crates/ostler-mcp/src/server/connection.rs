//! One client's session with a server: messages in, answers and notifications out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, join_all};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Context, Server, answers};
use crate::rpc::{self, Failure, Message};

/// How many notifications may wait for a client before further ones are dropped.
const WAITING_NOTIFICATIONS: usize = 256;

/// A client's session with a [`Server`]. Cheap to clone; clones are the same session.
#[derive(Clone, Debug)]
pub struct Connection {
    server: Server,
    shared: Arc<Shared>,
    notify: mpsc::Sender<Value>,
}

#[derive(Debug)]
struct Shared {
    /// Running requests by the text of their id. A client may use an id twice.
    running: Mutex<HashMap<String, Vec<(u64, CancellationToken)>>>,
    notifications: tokio::sync::Mutex<mpsc::Receiver<Value>>,
}

impl Connection {
    pub(super) fn new(server: Server) -> (Self, mpsc::Sender<Value>) {
        let (notify, notifications) = mpsc::channel(WAITING_NOTIFICATIONS);
        let notifications = tokio::sync::Mutex::new(notifications);
        let shared = Arc::new(Shared { running: Mutex::default(), notifications });
        (Self { server, shared, notify: notify.clone() }, notify)
    }

    /// Answers one message. Any number of messages may be handled concurrently.
    ///
    /// Returns `None` for a notification, and for a request that was cancelled meanwhile. Dropping the future drops
    /// the tool that runs in it.
    pub async fn handle(&self, message: Value) -> Option<Value> {
        if let Value::Array(batch) = message {
            return self.handle_batch(batch).await;
        }
        match rpc::open(message) {
            Ok(Message::Request { id, method, params }) => self.answer(id, &method, params).await,
            Ok(Message::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    self.cancel(params.get("requestId").unwrap_or(&Value::Null));
                }
                None
            }
            Ok(Message::Response) => None,
            Err((id, failure)) => Some(rpc::answer(&id, Err(failure))),
        }
    }

    /// Like [`Connection::handle`], for transports that need an answer to every message: otherwise an empty
    /// result. That is what a host sends back for an `mcp_message`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use serde_json::json;
    /// let connection = ostler_mcp::Server::new("calc", "1.0.0").connect();
    /// let answer = connection.respond(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    /// assert_eq!(answer, json!({"jsonrpc": "2.0", "result": {}}));
    /// # }
    /// ```
    pub async fn respond(&self, message: Value) -> Value {
        let answer = self.handle(message).await;
        answer.unwrap_or_else(|| json!({"jsonrpc": "2.0", "result": {}}))
    }

    /// Waits for the next notification of the server: progress of a call, or a changed list.
    pub async fn next_notification(&self) -> Value {
        match self.shared.notifications.lock().await.recv().await {
            Some(notification) => notification,
            // Unreachable, because this value holds a sender.
            None => std::future::pending().await,
        }
    }

    /// A pending notification, if any.
    pub(super) fn waiting_notification(&self) -> Option<Value> {
        self.shared.notifications.try_lock().ok()?.try_recv().ok()
    }

    /// Only version 2025-03-26 has batches.
    fn handle_batch(&self, batch: Vec<Value>) -> BoxFuture<'_, Option<Value>> {
        Box::pin(async move {
            if batch.is_empty() || batch.iter().any(Value::is_array) {
                let failure = Failure::invalid_request("a batch is a list of messages, not empty");
                return Some(rpc::answer(&Value::Null, Err(failure)));
            }
            let answers = join_all(batch.into_iter().map(|message| self.handle(message))).await;
            let answers: Vec<_> = answers.into_iter().flatten().collect();
            (!answers.is_empty()).then(|| answers.into())
        })
    }

    async fn answer(&self, id: Value, method: &str, mut params: Value) -> Option<Value> {
        if !matches!(params, Value::Null | Value::Object(_)) {
            let failure = Failure::invalid_params("`params` must be an object");
            return Some(rpc::answer(&id, Err(failure)));
        }
        let running = Running::begin(&self.shared, &id);
        let cancellation = running.token.clone();
        let context = Context {
            meta: meta(&mut params),
            cancellation: cancellation.clone(),
            notifications: self.notify.clone(),
            extensions: self.server.catalog(|catalog| catalog.extensions.clone()),
        };
        tokio::select! {
            biased;
            () = cancellation.cancelled() => None,
            result = answers::answer(&self.server, method, params, context) => {
                Some(rpc::answer(&id, result))
            }
        }
    }

    fn cancel(&self, id: &Value) {
        for (_, token) in self.shared.running().get(&id.to_string()).into_iter().flatten() {
            token.cancel();
        }
    }
}

fn meta(params: &mut Value) -> Map<String, Value> {
    match params.get_mut("_meta").map(Value::take) {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    }
}

impl Shared {
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<(u64, CancellationToken)>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running request. Dropping it removes it and cancels its token.
struct Running<'a> {
    shared: &'a Shared,
    id: String,
    number: u64,
    token: CancellationToken,
}

impl<'a> Running<'a> {
    fn begin(shared: &'a Shared, id: &Value) -> Self {
        let (id, token) = (id.to_string(), CancellationToken::new());
        let mut running = shared.running();
        let same_id = running.entry(id.clone()).or_default();
        let number = same_id.last().map_or(0, |(number, _)| number + 1);
        same_id.push((number, token.clone()));
        Self { shared, id, number, token }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut running = self.shared.running();
        if let Some(same_id) = running.get_mut(&self.id) {
            same_id.retain(|(number, _)| *number != self.number);
            if same_id.is_empty() {
                running.remove(&self.id);
            }
        }
    }
}
