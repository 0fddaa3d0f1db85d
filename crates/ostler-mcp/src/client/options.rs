//! How to talk to a server, and what to do when it speaks first.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use ostler_proto::control::{Elicitation, ElicitationReply};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Error;

type OnElicitation = dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync;
type OnEvent = dyn Fn(Event) + Send + Sync;
type OnProgress = dyn Fn(Progress) + Send + Sync;

/// How a [`Client`](super::Client) behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Name and version that the server is told.
    pub client_info: (String, String),
    /// How long the server may take until it is ready, and for each list of what it offers.
    pub startup_timeout: Duration,
    /// How long anything but a start may take; no limit if there is none.
    pub request_timeout: Option<Duration>,
    /// The longest message that is accepted, in bytes.
    pub message_limit: usize,
    /// What a custom endpoint's server would say in the handshake: spares the handshake.
    pub manifest: Option<Value>,
    pub(super) on_elicitation: Option<Arc<OnElicitation>>,
    pub(super) on_event: Option<Arc<OnEvent>>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            client_info: ("ostler".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            startup_timeout: Duration::from_secs(30),
            request_timeout: None,
            message_limit: 16 * 1024 * 1024,
            manifest: None,
            on_elicitation: None,
            on_event: None,
        }
    }
}

impl ClientOptions {
    /// Sets how long the server may take until it is ready, and for each list of what it offers; 30 seconds if nothing
    /// is set.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout;
        self
    }

    /// Sets how long a request may take.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Sets the longest message that is accepted; a longer one ends the connection.
    #[must_use]
    pub fn message_limit(mut self, bytes: usize) -> Self {
        self.message_limit = bytes;
        self
    }

    /// Spares the handshake with an [`Endpoint::Custom`](super::Endpoint::Custom): `manifest` is what
    /// [`Server::manifest`](crate::Server::manifest) makes.
    #[must_use]
    pub fn manifest(mut self, manifest: Value) -> Self {
        self.manifest = Some(manifest);
        self
    }

    /// Answers the server's questions to the user. Without it, or when it panics, they are declined.
    #[must_use]
    pub fn on_elicitation<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Elicitation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitationReply> + Send + 'static,
    {
        self.on_elicitation = Some(Arc::new(move |question| Box::pin(answer(question))));
        self
    }

    /// Hears what the server says unasked, in order. Must not block.
    #[must_use]
    pub fn on_event(mut self, hear: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(hear));
        self
    }
}

impl Debug for ClientOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientOptions")
            .field("startup_timeout", &self.startup_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("message_limit", &self.message_limit)
            .finish_non_exhaustive()
    }
}

/// Something the server said unasked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Its tools are others now.
    ToolsChanged,
    /// Its resources are others now.
    ResourcesChanged,
    /// Its prompts are others now.
    PromptsChanged,
    /// The question with this id was answered elsewhere, in a browser for instance.
    ElicitationComplete(String),
    /// Something else; `params` are `null` if there are none.
    Other {
        /// Which.
        method: String,
        /// What about it.
        params: Value,
    },
    /// The connection is gone. Nothing follows.
    Closed(Error),
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done.
    pub done: f64,
    /// Of how much, if that is known.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// How one call is made.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long it may take; as the client's options say if there is none.
    pub timeout: Option<Duration>,
    /// Ends the call when it fires. So does dropping the call's future.
    pub cancellation: Option<CancellationToken>,
    /// What the server is told about the call, as `_meta`.
    pub meta: Map<String, Value>,
    pub(super) on_progress: Option<Arc<OnProgress>>,
}

impl CallOptions {
    /// Sets how long the call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets what ends the call early.
    #[must_use]
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = Some(token);
        self
    }

    /// Tells the server something about the call.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Hears how far the call is, in order and never after its end. Must not block.
    #[must_use]
    pub fn on_progress(mut self, hear: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(hear));
        self
    }
}

impl Debug for CallOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}
