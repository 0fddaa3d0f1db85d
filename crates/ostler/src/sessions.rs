//! Stored sessions: list, read, rename, tag, delete and fork them without running an engine.
//!
//! The files are those of Claude Code and the official SDKs (`~/.claude/projects`), so each program sees the other's
//! sessions.
//!
//! ```no_run
//! # async fn example() -> Result<(), ostler::Error> {
//! use ostler::Sessions;
//!
//! let sessions = Sessions::new().folder("/srv/app");
//! for session in sessions.page(0, 20).await? {
//!     println!("{} {}", session.id, session.summary);
//! }
//! # Ok(()) }
//! ```
//!
//! | in Python | here |
//! |---|---|
//! | `list_sessions(directory, limit, offset)` | [`Sessions::list`], [`Sessions::page`] |
//! | `get_session_info` | [`Sessions::info`] |
//! | `get_session_messages` | [`Sessions::messages`]; an unknown session is an error, not an empty list |
//! | `rename_session`, `tag_session`, `delete_session` | [`Sessions::rename`], [`Sessions::tag`], [`Sessions::delete`] |
//! | `fork_session(up_to_message_id, title)` | [`Sessions::fork`], [`Sessions::fork_with`] |
//! | `list_sessions_from_store`, `rename_session_via_store` and the like | the same, after [`Sessions::store`] |

mod stored;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ostler_engine::store::{self, Projects, SessionFile, StoreError};
use ostler_proto::build;
use ostler_proto::message::{Assistant, User};
use ostler_proto::transcript::TranscriptLine;
use ostler_sdk::session_store::{SessionStoreOptions, project_key};
use ostler_sdk::{Error, Message, SessionError};

use self::stored::StoredSessions;
pub use ostler_proto::{SessionId, Uuid};

/// The sessions on this machine: of all working directories, or of one with [`Sessions::folder`].
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ostler::{ErrorKind, Sessions};
///
/// # let empty = std::env::temp_dir().join("ostler-no-sessions");
/// let sessions = Sessions::new().config_folder(&empty);
/// assert!(sessions.list().await?.is_empty());
/// let missing = sessions.delete("550e8400-e29b-41d4-a716-446655440000").await.unwrap_err();
/// assert_eq!(missing.kind(), ErrorKind::Session);
/// # Ok::<(), ostler::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    config: Option<PathBuf>,
    folder: Option<PathBuf>,
    ignores_worktrees: bool,
    store: Option<SessionStoreOptions>,
}

/// A session in a listing. The values come from the beginning and the end of its file; the middle is not read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The session's id, for [`crate::Options::resume`].
    pub id: SessionId,
    /// A text to display: the title, else the latest prompt, else a summary, else the first prompt.
    pub summary: String,
    /// When the file was last written.
    pub last_modified: SystemTime,
    /// The size of the file in bytes.
    pub file_size: u64,
    /// The title set by the user or the model.
    pub custom_title: Option<String>,
    /// The first prompt, shortened to 200 characters.
    pub first_prompt: Option<String>,
    /// The git branch at the end of the session.
    pub git_branch: Option<String>,
    /// The working directory.
    pub cwd: Option<PathBuf>,
    /// The tag, see [`Sessions::tag`].
    pub tag: Option<String>,
    /// When the session began.
    pub created_at: Option<SystemTime>,
}

/// How [`Sessions::fork_with`] copies a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ForkOptions {
    up_to: Option<Uuid>,
    title: Option<String>,
}

impl ForkOptions {
    /// Copies the whole conversation. The title is that of the original followed by ` (fork)`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies the conversation up to and including this message, given by its uuid in [`Sessions::messages`].
    pub fn up_to(mut self, message: impl Into<Uuid>) -> Self {
        self.up_to = Some(message.into());
        self
    }

    /// The title of the copy.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

impl Sessions {
    /// The sessions of all working directories, under `$CLAUDE_CONFIG_DIR` or else `~/.claude`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only the sessions of a working directory, and of the other git worktrees of its repository.
    #[must_use]
    pub fn folder(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.folder = Some(cwd.into());
        self
    }

    /// Leaves out the other git worktrees of the folder's repository.
    #[must_use]
    pub fn without_worktrees(mut self) -> Self {
        self.ignores_worktrees = true;
        self
    }

    /// Uses this configuration folder in place of `$CLAUDE_CONFIG_DIR` or `~/.claude`.
    #[must_use]
    pub fn config_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.config = Some(folder.into());
        self
    }

    /// Uses the sessions in a store in place of those on disk. They belong to the project key of the store's options; by
    /// default that is the key of [`Sessions::folder`], or of this process's working directory. Sessions of other git
    /// worktrees are not included.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use std::sync::Arc;
    /// use ostler::{InMemorySessionStore, Sessions};
    ///
    /// let store = Arc::new(InMemorySessionStore::new());
    /// let sessions = Sessions::new().folder("/srv/app").store(store);
    /// assert!(sessions.list().await?.is_empty());
    /// # Ok::<(), ostler::Error>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn store(mut self, store: impl Into<SessionStoreOptions>) -> Self {
        self.store = Some(store.into());
        self
    }

    /// All sessions, newest first. A session without a prompt is not listed.
    ///
    /// # Errors
    /// When neither `CLAUDE_CONFIG_DIR` nor `HOME` is set.
    pub async fn list(&self) -> Result<Vec<SessionInfo>, Error> {
        self.listed(0, None).await
    }

    /// At most `limit` sessions, newest first, without the first `offset` of them. Reads only as many files as needed.
    ///
    /// # Errors
    /// As [`Sessions::list`].
    pub async fn page(&self, offset: usize, limit: usize) -> Result<Vec<SessionInfo>, Error> {
        self.listed(offset, Some(limit)).await
    }

    async fn listed(&self, offset: usize, limit: Option<usize>) -> Result<Vec<SessionInfo>, Error> {
        if let Some(stored) = self.stored() {
            return stored.list(offset, limit).await;
        }
        self.blocking(move |sessions| {
            let cwds = sessions.folders();
            let listed = sessions.projects()?.page(cwds.as_deref(), offset, limit);
            Ok(listed.into_iter().map(SessionInfo::from).collect())
        })
        .await
    }

    /// One session; `None` if it does not exist or would not be listed.
    ///
    /// # Errors
    /// As [`Sessions::list`].
    pub async fn info(&self, id: impl Into<SessionId>) -> Result<Option<SessionInfo>, Error> {
        let id = id.into();
        if let Some(stored) = self.stored() {
            return stored.info(&id).await;
        }
        self.blocking(move |sessions| match sessions.find(&id) {
            Ok(file) => Ok(file.info().map(SessionInfo::from)),
            Err(StoreError::NotFound(_) | StoreError::NotAUuid(_)) => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// The conversation, oldest message first: messages of the user and the model, tool calls and their results. After
    /// a compaction it begins with the summary.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), ostler::Error> {
    /// use ostler::Sessions;
    ///
    /// for message in Sessions::new().messages("550e8400-e29b-41d4-a716-446655440000").await? {
    ///     if let Some(text) = message.text() {
    ///         println!("{text}");
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the session does not exist, or its file cannot be read.
    pub async fn messages(&self, id: impl Into<SessionId>) -> Result<Vec<Message>, Error> {
        self.with(id, |file| {
            let transcript = file.transcript()?;
            Ok(transcript.messages().into_iter().filter_map(message).collect())
        })
        .await
    }

    /// Gives a session a title.
    ///
    /// # Errors
    /// When the session does not exist, the title is empty, or the file cannot be written.
    pub async fn rename(
        &self,
        id: impl Into<SessionId>,
        title: impl Into<String>,
    ) -> Result<(), Error> {
        let title = title.into();
        self.with(id, move |file| file.rename(&title)).await
    }

    /// Sets the tag of a session; `None` removes it. A session has at most one tag.
    ///
    /// # Errors
    /// When the session does not exist, the tag is empty, or the file cannot be written.
    pub async fn tag(&self, id: impl Into<SessionId>, tag: Option<&str>) -> Result<(), Error> {
        let tag = tag.map(str::to_owned);
        self.with(id, move |file| file.tag(tag.as_deref())).await
    }

    /// Deletes a session permanently, together with the transcripts of its subagents.
    ///
    /// # Errors
    /// When the session does not exist, or its file cannot be deleted.
    pub async fn delete(&self, id: impl Into<SessionId>) -> Result<(), Error> {
        if let Some(stored) = self.stored() {
            return stored.delete(&id.into()).await;
        }
        self.with(id, SessionFile::delete).await
    }

    /// Copies a session and returns the copy's new id. The original does not change.
    ///
    /// # Errors
    /// When the session does not exist, it has no messages, or the copy cannot be written.
    pub async fn fork(&self, id: impl Into<SessionId>) -> Result<SessionId, Error> {
        self.fork_with(id, ForkOptions::new()).await
    }

    /// [`Sessions::fork`], up to a message or with another title.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), ostler::Error> {
    /// use ostler::sessions::{ForkOptions, Sessions};
    ///
    /// let options = ForkOptions::new().up_to("660e8400-e29b-41d4-a716-446655440001").title("Second try");
    /// let copy = Sessions::new().fork_with("550e8400-e29b-41d4-a716-446655440000", options).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Sessions::fork`], and when the session does not contain the message.
    pub async fn fork_with(
        &self,
        id: impl Into<SessionId>,
        options: ForkOptions,
    ) -> Result<SessionId, Error> {
        let ForkOptions { up_to, title } = options;
        self.with(id, move |file| file.fork(up_to.as_ref(), title.as_deref())).await
    }

    async fn with<T: Send + 'static>(
        &self,
        id: impl Into<SessionId>,
        work: impl FnOnce(&SessionFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Error> {
        let id = id.into();
        if let Some(stored) = self.stored() {
            return stored.with(&id, work).await;
        }
        self.blocking(move |sessions| work(&sessions.find(&id)?)).await
    }

    fn stored(&self) -> Option<StoredSessions<'_>> {
        let options = self.store.as_ref()?;
        let own = || project_key(self.folder.as_deref().unwrap_or(Path::new(".")));
        let project = options.project_key.clone().unwrap_or_else(own);
        Some(StoredSessions { options, project, cwd: self.folder.clone() })
    }

    /// Runs `work`, which reads and writes files, on a thread for blocking operations.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Error> {
        let sessions = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&sessions)).await;
        let done = done.map_err(|error| {
            SessionError::Storage(format!("reading the session failed: {error}"))
        })?;
        done.map_err(|error| error_of(error).into())
    }

    fn find(&self, id: &SessionId) -> Result<SessionFile, StoreError> {
        self.projects()?.session(self.folders().as_deref(), id)
    }

    fn projects(&self) -> Result<Projects, StoreError> {
        match &self.config {
            Some(config) => Ok(Projects::new(config)),
            None => Projects::from_env(|name| std::env::var_os(name)),
        }
    }

    fn folders(&self) -> Option<Vec<PathBuf>> {
        let folder = self.folder.as_ref()?;
        Some(match self.ignores_worktrees {
            true => vec![folder.clone()],
            false => store::worktrees(folder),
        })
    }
}

impl From<store::SessionInfo> for SessionInfo {
    fn from(info: store::SessionInfo) -> Self {
        Self {
            id: info.id,
            summary: info.summary,
            last_modified: info.modified,
            file_size: info.size,
            custom_title: info.title,
            first_prompt: info.first_prompt,
            git_branch: info.git_branch,
            cwd: info.cwd.map(PathBuf::from),
            tag: info.tag,
            created_at: info.created,
        }
    }
}

/// The message that a line of the file contains, if it is one of the user or the model.
fn message(line: &TranscriptLine) -> Option<Message> {
    match line {
        TranscriptLine::User(entry) => Some(Message::User(Box::new(User {
            message: entry.message.clone(),
            session_id: Some(entry.place.session_id.clone()),
            uuid: Some(entry.place.uuid.clone()),
            timestamp: Some(entry.place.timestamp.clone()),
            ..User::default()
        }))),
        TranscriptLine::Assistant(entry) => Some(Message::Assistant(Box::new(build!(Assistant {
            message: entry.message.clone(),
            session_id: entry.place.session_id.clone(),
            uuid: entry.place.uuid.clone(),
            timestamp: Some(entry.place.timestamp.clone())
        })))),
        _ => None,
    }
}

fn error_of(error: StoreError) -> SessionError {
    match error {
        StoreError::NotFound(id) => SessionError::NotFound(id),
        StoreError::NotAUuid(id) => SessionError::InvalidId(id),
        StoreError::NoSuchMessage { session, message } => SessionError::NoSuchMessage {
            session: session.to_string(),
            message: message.to_string(),
        },
        error @ (StoreError::Empty(_) | StoreError::NothingToFork(_)) => {
            SessionError::Invalid(error.to_string())
        }
        error => SessionError::Storage(error.to_string()),
    }
}
