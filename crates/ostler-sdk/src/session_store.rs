//! [`SessionStore`]: sessions in your own storage, such as a database.
//!
//! An engine writes transcripts to its disk. With [`Options::session_store`] every line of them is appended to a store
//! too, and [`Options::resume`] and [`Options::continue_newest`] read the session from there. So a conversation that
//! began on one machine can be resumed on another.
//!
//! ```
//! use std::sync::Arc;
//! use ostler_sdk::Options;
//! use ostler_sdk::session_store::{InMemorySessionStore, SessionKey, SessionStore};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let store = Arc::new(InMemorySessionStore::new());
//! // Every session of these options is stored, and resumed from the store.
//! let options = Options::new().session_store(Arc::clone(&store));
//!
//! // What the SDK does with it:
//! let key = SessionKey::new("-srv-app", "550e8400-e29b-41d4-a716-446655440000");
//! store.append(&key, &[json!({"type": "user", "uuid": "u1"})]).await?;
//! assert_eq!(store.load(&key).await?.unwrap().len(), 1);
//! # Ok::<(), ostler_sdk::session_store::SessionStoreError>(()) }).unwrap();
//! ```
//!
//! - [`InMemorySessionStore`] is an example of a store, and a store for tests.
//! - [`contract::check`] checks that a store does what the SDK relies on.
//! - [`SessionStoreOptions`] has the time limits and the key of the project.
//!
//! # What happens when
//!
//! Lines are appended once per turn, before the result of the turn can be read, and earlier when there are more than
//! 500 of them or 1 MiB ([`StoreFlush`]). An append that fails is tried three times, and again with the next lines of
//! the same session. The host receives each failure as a message ([`System::MirrorError`]); the conversation continues,
//! and its transcript stays on the engine's disk.
//!
//! To resume, the SDK loads the session into a temporary configuration folder, where the engine finds it. The folder
//! also contains copies of the user's settings and credentials, without the refresh token, and links to the user's
//! `CLAUDE.md`, agents, commands, skills and output styles. The SDK removes it when the engine has ended; if a line
//! could not be stored, the transcripts in it stay. Plugins of the user's settings are left out, and so is a login in
//! the Keychain of macOS: use a key or `CLAUDE_CODE_OAUTH_TOKEN` there. If the store does not have the session, the
//! engine looks for it on disk.
//!
//! This works with every engine that knows `--session-mirror`: the built-in one, `ostler`, and Claude Code, but not
//! Claude Code 2.1.50. The behaviour is that of the Python SDK's `SessionStore`, except that failed lines are retried
//! later.
//!
//! | in Python | here |
//! |---|---|
//! | `session_store`, `session_store_flush`, `load_timeout_ms` | [`Options::session_store`], [`SessionStoreOptions`] |
//! | `append`, `load`, `list_sessions`, `delete`, `list_subkeys` | the same |
//! | `NotImplementedError` | [`SessionStoreError::Unsupported`] |
//! | `MirrorErrorMessage` | [`System::MirrorError`] |
//! | `project_key_for_directory` | [`project_key`] |
//! | `run_session_store_conformance` | [`contract::check`] |
//!
//! [`Options::session_store`]: crate::OptionsFor::session_store
//! [`Options::resume`]: crate::OptionsFor::resume
//! [`Options::continue_newest`]: crate::OptionsFor::continue_newest
//! [`System::MirrorError`]: ostler_proto::message::System::MirrorError

mod config_folder;
pub mod contract;
mod key;
mod memory;
mod mirror;
mod resume;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

pub(crate) use self::config_folder::ConfigFolder;
pub use self::key::{SessionKey, project_key};
pub use self::memory::InMemorySessionStore;
pub(crate) use self::mirror::{Mirror, Unstored};
pub(crate) use self::resume::{Resumable, load_for_resume};

/// How long one call of a store may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a method of a store returns: `Box::pin(async move { … })`.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, SessionStoreError>>;

/// Stores transcripts of sessions, in addition to the disk of the engine.
///
/// Only [`append`](Self::append) and [`load`](Self::load) are required. The SDK deletes nothing by itself: how long
/// sessions are kept is up to the store. Run [`contract::check`] in the tests of a store.
pub trait SessionStore: Send + Sync + 'static {
    /// Appends lines to a transcript.
    ///
    /// The engine has written them to its disk already. Calls for one session follow one another and come from one
    /// process. Most lines have a `uuid`. A line that is sent again after a failure has the same `uuid`; a store should
    /// then ignore it. Lines without a `uuid`, such as titles, are always added. An empty list changes nothing.
    ///
    /// # Errors
    /// Any failure. The SDK retries, see the [module](self).
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> StoreFuture<'a, ()>;

    /// All lines in the order in which they were added; `None` for a key without lines. The order of the fields in an
    /// object may differ.
    ///
    /// # Errors
    /// Any failure. The session is not resumed then.
    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>>;

    /// The sessions of a project in any order, without the transcripts of subagents. Needed to continue the newest
    /// session.
    ///
    /// # Errors
    /// Any failure; [`SessionStoreError::Unsupported`] by default.
    fn list_sessions<'a>(&'a self, project_key: &'a str) -> StoreFuture<'a, Vec<StoredSession>> {
        let _ = project_key;
        unsupported("list_sessions")
    }

    /// Deletes a session with the transcripts of its subagents, or, if the key has a `subpath`, only that one
    /// transcript. A key that has no lines is not an error.
    ///
    /// # Errors
    /// Any failure; [`SessionStoreError::Unsupported`] by default.
    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ()> {
        let _ = key;
        unsupported("delete")
    }

    /// Every `subpath` that has lines in the session of this key, such as `subagents/agent-1`. Without this method,
    /// resuming restores the conversation but not the transcripts of its subagents.
    ///
    /// # Errors
    /// Any failure; [`SessionStoreError::Unsupported`] by default.
    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<String>> {
        let _ = key;
        unsupported("list_subkeys")
    }
}

fn unsupported<T: Send + 'static>(method: &'static str) -> StoreFuture<'static, T> {
    std::future::ready(Err(SessionStoreError::Unsupported(method))).boxed()
}

/// A store that several sessions share.
impl<S: SessionStore + ?Sized> SessionStore for Arc<S> {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> StoreFuture<'a, ()> {
        (**self).append(key, entries)
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>> {
        (**self).load(key)
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> StoreFuture<'a, Vec<StoredSession>> {
        (**self).list_sessions(project_key)
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ()> {
        (**self).delete(key)
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<String>> {
        (**self).list_subkeys(key)
    }
}

/// A session in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// The session.
    pub session_id: String,
    /// When the store last added a line to the session. `continue_newest` resumes the newest one.
    pub modified: SystemTime,
}

impl StoredSession {
    /// A session and the time of its last change.
    pub fn new(session_id: impl Into<String>, modified: SystemTime) -> Self {
        Self { session_id: session_id.into(), modified }
    }
}

/// Why a call of a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionStoreError {
    /// The store does not have this method.
    #[error("the session store does not implement `{0}`")]
    Unsupported(&'static str),
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] Box<dyn StdError + Send + Sync>),
}

impl SessionStoreError {
    /// A failure with an error of any type, or with a text.
    pub fn failed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

impl From<std::io::Error> for SessionStoreError {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<serde_json::Error> for SessionStoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(error)
    }
}

/// A store, and how a session uses it.
#[derive(Clone)]
#[non_exhaustive]
pub struct SessionStoreOptions {
    /// The store.
    pub store: Arc<dyn SessionStore>,
    /// The project of the session in the store, such as the name of a tenant; [`project_key`] of the working directory
    /// if `None`. Set it if a session is resumed in another directory than it began in.
    pub project_key: Option<String>,
    /// When lines are appended.
    pub flush: StoreFlush,
    /// How long one `append` may take; 60 s by default. An append that takes longer may still succeed, so it is not
    /// repeated before the next lines.
    pub append_timeout: Duration,
    /// How long each call may take when a session is loaded to be resumed; 60 s by default.
    pub load_timeout: Duration,
}

impl SessionStoreOptions {
    /// The defaults.
    pub fn new(store: impl SessionStore) -> Self {
        Self {
            store: Arc::new(store),
            project_key: None,
            flush: StoreFlush::default(),
            append_timeout: TIMEOUT,
            load_timeout: TIMEOUT,
        }
    }

    /// Sets the key of the project, see [`SessionStoreOptions::project_key`].
    #[must_use]
    pub fn project(mut self, key: impl Into<String>) -> Self {
        self.project_key = Some(key.into());
        self
    }

    /// Sets when lines are appended.
    #[must_use]
    pub fn flush(mut self, flush: StoreFlush) -> Self {
        self.flush = flush;
        self
    }
}

impl<S: SessionStore> From<S> for SessionStoreOptions {
    fn from(store: S) -> Self {
        Self::new(store)
    }
}

impl fmt::Debug for SessionStoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStoreOptions")
            .field("project_key", &self.project_key)
            .field("flush", &self.flush)
            .finish_non_exhaustive()
    }
}

/// The same store, used in the same way.
impl PartialEq for SessionStoreOptions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
            && self.project_key == other.project_key
            && self.flush == other.flush
            && self.append_timeout == other.append_timeout
            && self.load_timeout == other.load_timeout
    }
}

impl Eq for SessionStoreOptions {}

/// When lines are appended to a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFlush {
    /// Once per turn, before its result can be read, and whenever more than 500 lines or 1 MiB wait.
    #[default]
    Batched,
    /// As soon as the engine has written them. Lines that arrive while the store is busy are appended together.
    Eager,
}
