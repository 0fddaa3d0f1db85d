//! Options of a client and of a call, and events of a server.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_proto::control::{Elicitation, ElicitationReply};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::Error;

type Roots = dyn Fn() -> Vec<Root> + Send + Sync;
type OnElicitation = dyn Fn(Elicitation) -> BoxFuture<'static, ElicitationReply> + Send + Sync;
type OnSampling = dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync;
type OnEvent = dyn Fn(Event) + Send + Sync;
type OnProgress = dyn Fn(Progress) + Send + Sync;
type Headers = BTreeMap<String, String>;
pub(super) type RenewHeaders =
    dyn Fn() -> BoxFuture<'static, Result<Headers, String>> + Send + Sync;

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
    pub(super) roots: Option<Arc<Roots>>,
    pub(super) on_elicitation: Option<Arc<OnElicitation>>,
    pub(super) on_sampling: Option<Arc<OnSampling>>,
    pub(super) on_event: Option<Arc<OnEvent>>,
    #[cfg_attr(
        not(feature = "http"),
        allow(dead_code, reason = "only servers with a URL get headers")
    )]
    pub(super) renew_headers: Option<Arc<RenewHeaders>>,
}

/// A folder that the server may work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// A `file://` address, see [`Root::folder`].
    pub uri: String,
    /// A name for users.
    pub name: Option<String>,
}

impl Root {
    /// The root for a folder of this machine.
    pub fn folder(path: &Path) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { uri: file_uri(path), name }
    }

    pub(super) fn to_value(&self) -> Value {
        match &self.name {
            Some(name) => json!({"uri": self.uri, "name": name}),
            None => json!({"uri": self.uri}),
        }
    }
}

/// The path as an address: everything but unreserved characters and slashes is escaped.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
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
            roots: None,
            on_elicitation: None,
            on_sampling: None,
            on_event: None,
            renew_headers: None,
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

    /// Tells the server which folders it may work in: the result of `roots` when the server asks. After a change,
    /// call [`Client::roots_changed`](super::Client::roots_changed).
    #[must_use]
    pub fn roots(mut self, roots: impl Fn() -> Vec<Root> + Send + Sync + 'static) -> Self {
        self.roots = Some(Arc::new(roots));
        self
    }

    /// Answers the server's questions to the user. Without it the server is told that there is no user to ask, and a
    /// question that it asks nevertheless is cancelled. A callback that panics declines.
    #[must_use]
    pub fn on_elicitation<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Elicitation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitationReply> + Send + 'static,
    {
        self.on_elicitation = Some(Arc::new(move |question| Box::pin(answer(question))));
        self
    }

    /// Answers the server's requests to the model (`sampling/createMessage`): gets their parameters, returns the result or
    /// why there is none. Ask the user first. Without it the server is told that it cannot ask the model. A callback that
    /// panics refuses.
    #[must_use]
    pub fn on_sampling<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.on_sampling = Some(Arc::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Replaces headers when a server with streamable HTTP refuses a request with 401: those that `renew` returns are
    /// sent from then on, and the request is made once more. For headers that expire.
    #[must_use]
    pub fn renew_headers<F, Fut>(mut self, renew: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BTreeMap<String, String>, String>> + Send + 'static,
    {
        self.renew_headers = Some(Arc::new(move || Box::pin(renew())));
        self
    }

    /// Receives the server's notifications, in order. Must not block.
    #[must_use]
    pub fn on_event(mut self, listener: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }
}

impl ClientOptions {
    /// The answer to `sampling/createMessage`.
    pub(super) async fn sample(&self, params: Value) -> Result<Value, String> {
        let Some(callback) = self.on_sampling.clone() else {
            return Err("this client does not ask a model for servers".to_owned());
        };
        let answer = AssertUnwindSafe(async { callback(params).await }).catch_unwind().await;
        answer.unwrap_or_else(|_| Err("the client failed".to_owned()))
    }

    /// The result of `roots/list`. A callback that panics names no folder.
    pub(super) fn root_list(&self) -> Value {
        let roots = self.roots.as_ref().map(|roots| catch_unwind(AssertUnwindSafe(|| roots())));
        let roots = roots.and_then(Result::ok).unwrap_or_default();
        json!({"roots": roots.iter().map(Root::to_value).collect::<Vec<_>>()})
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
    /// A request did not reach the server, so it is probably down. The connection stays: a later request may be answered.
    Unreachable(Error),
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
    /// How long the call may take in all if progress extends its timeout; `None` if progress does not.
    pub most: Option<Duration>,
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

    /// Lets every report of progress begin the timeout again, until the call has taken `most` in all.
    #[must_use]
    pub fn extended_by_progress(mut self, most: Duration) -> Self {
        self.most = Some(most);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_folder_has_no_character_that_an_address_must_not_have() {
        let root = Root::folder(Path::new("/home/a b/100%/ü#?"));
        assert_eq!(root.uri, "file:///home/a%20b/100%25/%C3%BC%23%3F");
        assert_eq!(root.name.as_deref(), Some("ü#?"));
        assert_eq!(Root::folder(Path::new("/")).to_value(), json!({"uri": "file:///"}));
    }
}
