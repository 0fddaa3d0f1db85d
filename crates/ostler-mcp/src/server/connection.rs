//! One client's session with a server: messages in, answers and notifications out.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::client::{Asking, Client, Described, described};
use super::level::Level;
use super::listeners::{Filter, MOST_WATCHED, Wants, Watched};
use super::questions::Questions;
use super::refusal::Refusal;
use super::rounds::Rounds;
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
    /// What the client said about itself in the handshake.
    client: Mutex<SessionClient>,
    questions: Arc<Questions>,
    watched: Watched,
}

#[derive(Debug)]
struct SessionClient {
    capabilities: Value,
    /// Log messages below it are not sent.
    log_level: Level,
}

impl Connection {
    /// A session that is notified of changes.
    pub(super) fn new(server: Server) -> Self {
        let connection = Self::unannounced(server);
        let wants = Wants::Session(Arc::clone(&connection.shared.watched));
        connection.server.listeners().add(connection.notify.clone(), wants);
        connection
    }

    /// One that is not notified of changes.
    pub(super) fn unannounced(server: Server) -> Self {
        let (notify, notifications) = mpsc::channel(WAITING_NOTIFICATIONS);
        let notifications = tokio::sync::Mutex::new(notifications);
        let client = SessionClient { capabilities: json!({}), log_level: Level::Info };
        let shared = Arc::new(Shared {
            running: Mutex::default(),
            notifications,
            client: Mutex::new(client),
            questions: Arc::default(),
            watched: Watched::default(),
        });
        Self { server, shared, notify }
    }

    /// Answers one message. Any number of messages may be handled concurrently.
    ///
    /// Returns `None` for a notification, and for a request that was cancelled meanwhile. Dropping the future drops
    /// the tool that runs in it. `subscriptions/listen` (MCP 2026-07-28) runs until it is cancelled.
    pub async fn handle(&self, message: Value) -> Option<Value> {
        self.handle_on(message, &self.notify, false).await
    }

    /// Like [`Connection::handle`]; what belongs to the request (progress, log messages, questions) goes to `outgoing`.
    /// `is_stateless` says that the transport knows the message to belong to no session.
    pub(super) async fn handle_on(
        &self,
        mut message: Value,
        outgoing: &mpsc::Sender<Value>,
        is_stateless: bool,
    ) -> Option<Value> {
        if let Value::Array(batch) = message {
            return self.handle_batch(batch, outgoing).await;
        }
        if message.get("method").is_none() && message.get("id").is_some() {
            self.shared.questions.answered(&mut message);
        }
        match rpc::open(message) {
            Ok(Message::Request { id, method, params }) => {
                self.answer(id, &method, params, outgoing, is_stateless).await
            }
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
    fn handle_batch<'a>(
        &'a self,
        batch: Vec<Value>,
        outgoing: &'a mpsc::Sender<Value>,
    ) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move {
            if batch.is_empty() || batch.iter().any(Value::is_array) {
                let failure = Failure::invalid_request("a batch is a list of messages, not empty");
                return Some(rpc::answer(&Value::Null, Err(failure)));
            }
            let answers =
                join_all(batch.into_iter().map(|item| self.handle_on(item, outgoing, false))).await;
            let answers: Vec<_> = answers.into_iter().flatten().collect();
            (!answers.is_empty()).then(|| answers.into())
        })
    }

    async fn answer(
        &self,
        id: Value,
        method: &str,
        params: Value,
        outgoing: &mpsc::Sender<Value>,
        must_be_stateless: bool,
    ) -> Option<Value> {
        if !matches!(params, Value::Null | Value::Object(_)) {
            let failure = Failure::invalid_params("`params` must be an object");
            return Some(rpc::answer(&id, Err(failure)));
        }
        let running = Running::begin(&self.shared, &id);
        let cancellation = running.token.clone();
        let stream = Stream { id: &id, outgoing, cancellation: cancellation.clone() };
        tokio::select! {
            biased;
            () = cancellation.cancelled() => None,
            result = self.perform(method, params, &stream, must_be_stateless) => Some(match result {
                Ok(result) => rpc::answer(&id, Ok(result)),
                Err(refusal) => refusal.answer(&id),
            }),
        }
    }

    async fn perform(
        &self,
        method: &str,
        mut params: Value,
        stream: &Stream<'_>,
        must_be_stateless: bool,
    ) -> Result<Value, Refusal> {
        let meta = meta(&mut params);
        let server = &self.server;
        let Some(described) = described(method, &meta, must_be_stateless)? else {
            return match method {
                "logging/setLevel" => self.set_level(&params),
                "resources/subscribe" => self.watch(&params, true),
                "resources/unsubscribe" => self.watch(&params, false),
                _ => {
                    if method == "initialize" {
                        self.shared.client().capabilities = params["capabilities"].clone();
                    }
                    let context = self.context(meta, self.session_client(), stream);
                    answers::answer(server, method, params, context).await
                }
            };
        };
        if method == "subscriptions/listen" {
            return self.listen(&params, stream).await;
        }
        let Described { capabilities, log_level } = described;
        let rounds = Rounds::take(server.signer(), method, &mut params)?;
        let log_level = log_level.filter(|_| server.catalog(|catalog| catalog.logs));
        let client = Client::new(capabilities, log_level, Asking::Rounds(Box::new(rounds)));
        let context = self.context(meta, client, stream);
        answers::answer_stateless(server, method, params, context).await
    }

    fn context(&self, meta: Map<String, Value>, client: Client, stream: &Stream<'_>) -> Context {
        Context {
            meta,
            cancellation: stream.cancellation.clone(),
            outgoing: stream.outgoing.clone(),
            extensions: self.server.catalog(|catalog| catalog.extensions.clone()),
            client: Arc::new(client),
        }
    }

    fn session_client(&self) -> Client {
        let client = self.shared.client();
        let logs = self.server.catalog(|catalog| catalog.logs);
        let asking = Asking::Requests(Arc::clone(&self.shared.questions));
        Client::new(client.capabilities.clone(), logs.then_some(client.log_level), asking)
    }

    fn set_level(&self, params: &Value) -> Result<Value, Refusal> {
        if !self.server.catalog(|catalog| catalog.logs) {
            return Err(Failure::unknown_method("logging/setLevel").into());
        }
        let level = answers::text(params, "level")?;
        self.shared.client().log_level = level.parse().map_err(Failure::invalid_params)?;
        Ok(json!({}))
    }

    /// Begins or ends to watch a resource.
    fn watch(&self, params: &Value, begins: bool) -> Result<Value, Refusal> {
        let uri = answers::text(params, "uri")?;
        let mut watched = self.shared.watched.lock();
        if !begins {
            watched.remove(&uri);
            return Ok(json!({}));
        }
        if answers::find_resource(&self.server, &uri).is_none() {
            return Err(Refusal::resource_not_found(&uri, false));
        }
        if watched.len() >= MOST_WATCHED && !watched.contains(&uri) {
            let message = format!("more than {MOST_WATCHED} resources are watched");
            return Err(Refusal::new(-32000, message, None));
        }
        watched.insert(uri);
        Ok(json!({}))
    }

    /// Sends notifications until the client ends the request.
    async fn listen(&self, params: &Value, stream: &Stream<'_>) -> Result<Value, Refusal> {
        let filter = Filter::read(&params["notifications"]).map_err(Failure::invalid_params)?;
        let first = filter.acknowledgement(stream.id);
        // A closed stream ends the request anyway.
        stream.outgoing.send(first).await.ok();
        let wants = Wants::Stream { id: stream.id.clone(), filter };
        let number = self.server.listeners().add(stream.outgoing.clone(), wants);
        let _listening = Listening { server: &self.server, number };
        std::future::pending().await
    }

    /// Cancels every request that runs.
    #[cfg(feature = "serve-http")]
    pub(super) fn cancel_all(&self) {
        self.shared.running().values().flatten().for_each(|(_, token)| token.cancel());
    }

    fn cancel(&self, id: &Value) {
        for (_, token) in self.shared.running().get(&id.to_string()).into_iter().flatten() {
            token.cancel();
        }
    }
}

/// A request that runs: its id, where its messages go, and how it ends.
struct Stream<'a> {
    id: &'a Value,
    outgoing: &'a mpsc::Sender<Value>,
    cancellation: CancellationToken,
}

/// An open stream of notifications. Dropping it ends them.
struct Listening<'a> {
    server: &'a Server,
    number: u64,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.server.listeners().remove(self.number);
    }
}

fn meta(params: &mut Value) -> Map<String, Value> {
    match params.as_object_mut().and_then(|params| params.remove("_meta")) {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    }
}

impl Shared {
    fn running(
        &self,
    ) -> parking_lot::MutexGuard<'_, HashMap<String, Vec<(u64, CancellationToken)>>> {
        self.running.lock()
    }

    fn client(&self) -> parking_lot::MutexGuard<'_, SessionClient> {
        self.client.lock()
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
