//! Sessions of a [`SessionStore`](ostler_sdk::SessionStore).
//!
//! A session is copied to a temporary folder and read or changed there like a session on disk. New lines are appended to
//! the store.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::SystemTime;

use ostler_engine::store::{Projects, SessionFile, StoreError};
use ostler_proto::SessionId;
use ostler_sdk::session_store::{
    SessionKey, SessionStoreError, SessionStoreOptions, StoreFuture, StoredSession,
};
use ostler_sdk::{Error, SessionError};
use serde_json::Value;

use super::{SessionInfo, error_of};

/// The sessions of one project.
pub(super) struct StoredSessions<'a> {
    pub(super) options: &'a SessionStoreOptions,
    pub(super) project: String,
    /// The working directory of sessions that do not name one, as for those on disk.
    pub(super) cwd: Option<PathBuf>,
}

impl StoredSessions<'_> {
    /// The listing, newest first. Loads sessions until there are enough.
    pub(super) async fn list(
        &self,
        offset: usize,
        limit: Option<usize>,
    ) -> Result<Vec<SessionInfo>, Error> {
        let mut sessions = self.all().await?;
        sessions.sort_by_key(|session| std::cmp::Reverse(session.modified));
        let up_to = limit.map_or(usize::MAX, |limit| offset.saturating_add(limit));
        let mut listed = Vec::new();
        for session in sessions {
            if listed.len() >= up_to {
                break;
            }
            let id = SessionId::from(session.session_id.as_str());
            listed.extend(self.described(&id, session.modified).await?);
        }
        Ok(listed.into_iter().skip(offset).collect())
    }

    /// One session of the listing; `None` if it does not exist or would not be listed.
    pub(super) async fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>, Error> {
        let listed = self.all().await?.into_iter().find(|it| it.session_id == id.as_str());
        match listed {
            Some(session) => self.described(id, session.modified).await,
            None => Ok(None),
        }
    }

    async fn described(
        &self,
        id: &SessionId,
        modified: SystemTime,
    ) -> Result<Option<SessionInfo>, Error> {
        match self.with(id, |file| Ok(file.info())).await {
            Ok(info) => Ok(info.map(|info| {
                let info = SessionInfo::from(info);
                let cwd = info.cwd.clone().or_else(|| self.cwd.clone());
                SessionInfo { last_modified: modified, cwd, ..info }
            })),
            Err(Error::Session(SessionError::NotFound(_) | SessionError::InvalidId(_))) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads or changes a session. Lines that `work` adds to it, and new sessions, are appended to the store.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        id: &SessionId,
        work: impl FnOnce(&SessionFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Error> {
        let entries = self.load(id).await?;
        let id = id.clone();
        let changed = tokio::task::spawn_blocking(move || {
            let copy = SessionCopy::create(&id, &entries)
                .map_err(|error| SessionError::Storage(format!("cannot copy {id}: {error}")))?;
            let value = work(&copy.file().map_err(error_of)?).map_err(error_of)?;
            let added = copy.added_lines(&id);
            Ok::<_, SessionError>((value, added))
        });
        let changed = changed.await.map_err(|error| SessionError::Storage(error.to_string()))?;
        let (value, added) = changed?;
        for (id, entries) in added {
            let key = self.key(&id);
            self.answer(self.options.store.append(&key, &entries)).await?;
        }
        Ok(value)
    }

    pub(super) async fn delete(&self, id: &SessionId) -> Result<(), Error> {
        self.load(id).await?;
        self.answer(self.options.store.delete(&self.key(id.as_str()))).await
    }

    async fn all(&self) -> Result<Vec<StoredSession>, Error> {
        self.answer(self.options.store.list_sessions(&self.project)).await
    }

    async fn load(&self, id: &SessionId) -> Result<Vec<Value>, Error> {
        // Stores and this module use the id in file names.
        if uuid::Uuid::try_parse(id.as_str()).is_err() {
            return Err(SessionError::InvalidId(id.to_string()).into());
        }
        let key = self.key(id.as_str());
        let entries = self.answer(self.options.store.load(&key)).await?.unwrap_or_default();
        match entries.is_empty() {
            true => Err(SessionError::NotFound(id.to_string()).into()),
            false => Ok(entries),
        }
    }

    fn key(&self, id: &str) -> SessionKey {
        SessionKey::new(&self.project, id)
    }

    async fn answer<T>(&self, asked: StoreFuture<'_, T>) -> Result<T, Error> {
        let limit = self.options.load_timeout;
        let late = |_| SessionStoreError::failed(format!("it took longer than {limit:?}"));
        let answered = tokio::time::timeout(limit, asked).await.map_err(late).flatten();
        let failed = |error| SessionError::Storage(format!("the session store failed: {error}"));
        answered.map_err(|error| failed(error).into())
    }
}

/// A session in a temporary configuration folder. Dropping it removes the folder.
struct SessionCopy {
    config: PathBuf,
    id: SessionId,
    n_bytes: usize,
}

impl SessionCopy {
    fn create(id: &SessionId, entries: &[Value]) -> io::Result<Self> {
        let config = std::env::temp_dir().join(format!("ostler-session-{}", uuid::Uuid::new_v4()));
        DirBuilder::new().mode(0o700).create(&config)?;
        let mut copy = Self { config, id: id.clone(), n_bytes: 0 };
        fs::create_dir_all(copy.folder())?;
        let path = copy.folder().join(format!("{id}.jsonl"));
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        for entry in entries {
            let line = format!("{entry}\n");
            copy.n_bytes += line.len();
            file.write_all(line.as_bytes())?;
        }
        Ok(copy)
    }

    fn folder(&self) -> PathBuf {
        self.config.join("projects").join("copy")
    }

    fn file(&self) -> Result<SessionFile, StoreError> {
        Projects::new(&self.config).session(None, &self.id)
    }

    /// The lines written since the copy was made: further lines of the session, and all lines of other sessions.
    fn added_lines(&self, id: &SessionId) -> Vec<(String, Vec<Value>)> {
        let files = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let lines = |path: PathBuf| {
            let session = path.file_stem()?.to_str()?.to_owned();
            let bytes = ostler_files::read_bytes(&path, u64::MAX).ok()?;
            let n_known = if session == id.as_str() { self.n_bytes } else { 0 };
            let lines = bytes.get(n_known..)?.split(|byte| *byte == b'\n');
            let lines = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
            Some((session, lines))
        };
        let added = files.filter_map(|entry| lines(entry.path()));
        added.filter(|(_, lines): &(String, Vec<Value>)| !lines.is_empty()).collect()
    }
}

impl Drop for SessionCopy {
    fn drop(&mut self) {
        // If this fails, the system removes the folder with its other temporary files.
        let _ = fs::remove_dir_all(&self.config);
    }
}
