//! Sessions on disk, in the vendor's folders and line format: either program lists and resumes the other's sessions.
//!
//! [`Projects`] is the folder of all sessions. [`Projects::open`] begins, resumes or forks one and returns a
//! [`TranscriptWriter`] for new messages and the conversation so far. [`Transcript`] reads a file in any state. Files
//! are only ever appended to, by whole lines.
//!
//! Everything here is plain blocking code. Appends are one short `write` into the page cache and may be called
//! from async code directly; whatever reads files ([`Projects::open`], lists, edits) belongs on a blocking thread.

mod chain;
pub mod checkpoint;
mod conversation;
mod edit;
mod file;
mod folder;
mod fork;
mod guard;
pub mod ids;
mod line;
mod list;
mod reader;
mod recent;
mod resume;
mod scan;
mod session_file;
mod shared;
mod worktrees;
mod writer;

use std::io;
use std::path::{Path, PathBuf};

use ostler_proto::{AgentId, SessionId, Uuid};

pub use self::conversation::LOST_BEGINNING;
pub use self::folder::{Projects, folder_name};
pub use self::list::SessionInfo;
pub use self::reader::Transcript;
pub use self::resume::{OpenedSession, SessionStart, StartFrom};
pub use self::session_file::SessionFile;
pub use self::shared::SharedTranscript;
pub use self::worktrees::worktrees;
pub use self::writer::{AgentMeta, LineContext, TranscriptWriter};

/// Why a session could not be found, read or written. The texts are meant for users; hosts match on some of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such session.
    #[error("No conversation found with session ID: {0}")]
    NotFound(String),
    /// The folder has no session yet.
    #[error("No conversation found to continue")]
    NothingToContinue,
    /// The id for a new session belongs to an existing one.
    #[error("Session ID {0} is already in use")]
    InUse(SessionId),
    /// A session's id names its file, so it has to be a UUID.
    #[error("Invalid session ID: {0} is not a UUID")]
    NotAUuid(String),
    /// A subagent's id names its file too.
    #[error("Invalid agent ID: {0}")]
    NotAnAgentId(AgentId),
    /// A resumed session keeps its id.
    #[error("a session ID can only be chosen for a new or forked session")]
    IdNeedsFork,
    /// A title or the beginning of an id matches several sessions.
    #[error("{n} sessions match {key}: use the full session ID")]
    Ambiguous {
        /// The title or prefix of an id.
        key: String,
        /// How many there are.
        n: usize,
    },
    /// The session does not contain the message to resume at.
    #[error("No message {message} found in session {session}")]
    NoSuchMessage {
        /// The session.
        session: SessionId,
        /// The message.
        message: Uuid,
    },
    /// Resuming at a message would drop more than the turn the caller named.
    #[error("Resume rejected by --resume-drops-turn: {0}")]
    DropsMore(String),
    /// The session has no messages that could be copied.
    #[error("session {0} has no messages to fork")]
    NothingToFork(SessionId),
    /// A title or tag is empty.
    #[error("a {0} must not be empty")]
    Empty(&'static str),
    /// The folder of the files is unknown.
    #[error("neither CLAUDE_CONFIG_DIR nor HOME is set")]
    NoHome,
    /// An operation on a file failed.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// The system's name of the error, as `session_writes_lost` reports it.
    pub fn code(&self) -> Option<&'static str> {
        let Self::Io { source, .. } = self else { return None };
        Some(match source.kind() {
            io::ErrorKind::StorageFull => "ENOSPC",
            io::ErrorKind::QuotaExceeded => "EDQUOT",
            io::ErrorKind::PermissionDenied => "EACCES",
            io::ErrorKind::ReadOnlyFilesystem => "EROFS",
            io::ErrorKind::NotFound => "ENOENT",
            io::ErrorKind::FileTooLarge => "EFBIG",
            _ => "EIO",
        })
    }
}

/// Adds the operation and the path to an IO error.
fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { doing, path, source }
}

/// The time of lines. No two lines of a writer have the same time: the vendor's old level takes the latest line as the
/// end of the conversation, and the first of two lines with the same time.
#[derive(Debug)]
struct Clock(jiff::Timestamp);

impl Default for Clock {
    fn default() -> Self {
        Self(jiff::Timestamp::now())
    }
}

impl Clock {
    /// A clock for lines that follow one of this time.
    fn after(time: &str) -> Self {
        Self(
            time.parse()
                .map_or_else(|_| jiff::Timestamp::now(), |time| jiff::Timestamp::now().max(time)),
        )
    }

    /// Now, or a millisecond after the last time.
    fn tick(&mut self) -> String {
        let next = self.0.saturating_add(jiff::SignedDuration::from_millis(1)).unwrap_or(self.0);
        self.0 = next.max(jiff::Timestamp::now());
        format!("{:.3}", self.0)
    }
}
