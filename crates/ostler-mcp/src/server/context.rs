//! What a tool can learn about its call, and report during it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::level::Level;
use crate::rpc;

/// A call of a tool or a prompt: its metadata, its cancellation, progress reports, log messages, and questions to the
/// client.
#[derive(Clone, Debug)]
pub struct Context {
    pub(super) meta: Map<String, Value>,
    pub(super) cancellation: CancellationToken,
    /// The stream of this call.
    pub(super) outgoing: mpsc::Sender<Value>,
    pub(super) extensions: Extensions,
    pub(super) client: Arc<Client>,
}

/// Values that a server gives to its tools, one of each type.
#[derive(Clone, Default)]
pub(super) struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    pub(super) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extensions({})", self.0.len())
    }
}

impl Context {
    /// The id of the model's tool call, if the host sends it.
    pub fn tool_use_id(&self) -> Option<&str> {
        self.meta_text(&["claudecode/toolUseId", "ostler/toolUseId"])
    }

    /// The session of the call, if the host sends it.
    pub fn session_id(&self) -> Option<&str> {
        self.meta_text(&["claudecode/sessionId", "ostler/sessionId"])
    }

    /// What the server was given for its tools, see [`Server::extension`](super::Server::extension).
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extensions.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// All metadata of the call (`_meta`).
    pub fn meta(&self) -> &Map<String, Value> {
        &self.meta
    }

    /// Fires when the call is cancelled. The tool's future is dropped then, so this is only needed for work that
    /// continues elsewhere: in a thread, a spawned task or a child process.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Reports progress to the host; `total` if known. Never waits: if the host does not listen or cannot keep up,
    /// the report is dropped.
    pub fn progress(&self, done: f64, total: Option<f64>, message: impl Into<String>) {
        let Some(token) = self.meta.get("progressToken") else { return };
        let mut params = Map::new();
        params.insert("progressToken".to_owned(), token.clone());
        params.insert("progress".to_owned(), json!(done));
        if let Some(total) = total {
            params.insert("total".to_owned(), json!(total));
        }
        let message = message.into();
        if !message.is_empty() {
            params.insert("message".to_owned(), message.into());
        }
        let notification = rpc::notification("notifications/progress", Some(params.into()));
        self.outgoing.try_send(notification).ok();
    }

    /// Sends a log message to the host, unless it is below the level that the host asked for, or the server does not
    /// [declare](super::Server::logging) that it logs. Never waits: if the host cannot keep up, the message is dropped.
    ///
    /// ```
    /// use ostler_mcp::{Context, Level, tool_with_context};
    ///
    /// let tool = tool_with_context("sync", "Copies the notes", |(): (), context: Context| {
    ///     context.log(Level::Info, "sync", "copied 3 notes");
    /// });
    /// ```
    pub fn log(&self, level: Level, logger: &str, data: impl Into<Value>) {
        if self.client.log_level.is_none_or(|lowest| level < lowest) {
            return;
        }
        let mut params = json!({"level": level.as_str(), "data": data.into()});
        if !logger.is_empty() {
            params["logger"] = logger.into();
        }
        self.outgoing.try_send(rpc::notification("notifications/message", Some(params))).ok();
    }

    fn meta_text(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.meta.get(*key)?.as_str())
    }
}
