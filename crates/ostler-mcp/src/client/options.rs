//! Options of a client and of a call, and events of a server.

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
    /// Name and version sent to the server.
    pub client_info: (String, String),
    /// How long the server may take until it is ready, and for each of its lists.
    pub startup_timeout: Duration,
    /// How long any other request may take; `None` for no limit.
    pub request_timeout: Option<Duration>,
    /// The size limit of a message, in bytes.
    pub message_limit: usize,
    /// A custom endpoint's answers to the handshake, which is then skipped.
    pub manifest: Option<Value>,
    /// How to sign in to a server behind a URL that requires it.
    #[cfg(feature = "http")]
    pub oauth: super::OAuthOptions,
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
            #[cfg(feature = "http")]
            oauth: super::OAuthOptions::default(),
            on_elicitation: None,
            on_event: None,
        }
    }
}

impl ClientOptions {
    /// Sets how long the server may take until it is ready, and for each of its lists; 30 seconds by default.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout;
        self
    }

    /// Sets the timeout of a request.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Sets the size limit of a message; a larger one ends the connection.
    #[must_use]
    pub fn message_limit(mut self, bytes: usize) -> Self {
        self.message_limit = bytes;
        self
    }

    /// Skips the handshake with an [`Endpoint::Custom`](super::Endpoint::Custom); `manifest` is what
    /// [`Server::manifest`](crate::Server::manifest) returns.
    #[must_use]
    pub fn manifest(mut self, manifest: Value) -> Self {
        self.manifest = Some(manifest);
        self
    }

    /// Sets how to sign in to a server behind a URL that requires it.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn oauth(mut self, options: super::OAuthOptions) -> Self {
        self.oauth = options;
        self
    }

    /// Answers the server's questions to the user. Without it, or if it panics, they are declined.
    #[must_use]
    pub fn on_elicitation<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Elicitation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitationReply> + Send + 'static,
    {
        self.on_elicitation = Some(Arc::new(move |question| Box::pin(answer(question))));
        self
    }

    /// Receives the server's notifications, in order. Must not block.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
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

/// A notification of the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Its list of tools changed.
    ToolsChanged,
    /// Its list of resources changed.
    ResourcesChanged,
    /// Its list of prompts changed.
    PromptsChanged,
    /// The question with this id was answered elsewhere, such as in a browser.
    ElicitationComplete(String),
    /// Any other notification; `params` is `null` if absent.
    #[non_exhaustive]
    Other {
        /// The JSON-RPC method.
        method: String,
        /// Its parameters.
        params: Value,
    },
    /// The connection ended. Nothing follows.
    Closed(Error),
}

/// Progress of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done.
    pub done: f64,
    /// The total, if known.
    pub total: Option<f64>,
    /// A status text.
    pub message: Option<String>,
}

/// Options of one call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// The timeout; that of the client by default.
    pub timeout: Option<Duration>,
    /// Cancels the call, as dropping its future does.
    pub cancellation: Option<CancellationToken>,
    /// Data for the server about the call, as `_meta`.
    pub meta: Map<String, Value>,
    pub(super) on_progress: Option<Arc<OnProgress>>,
}

impl CallOptions {
    /// Sets the timeout of the call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets a token that cancels the call.
    #[must_use]
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = Some(token);
        self
    }

    /// Adds an entry to `_meta`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Receives progress of the call, in order and never after its end. Must not block.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(listener));
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
