//! A second store, in a folder, to show that another kind of store can fulfil the contract.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use futures::FutureExt as _;
use ostler_sdk::SessionStore;
use ostler_sdk::session_store::{SessionKey, SessionStoreError, StoreFuture, StoredSession};
use serde_json::Value;
use tempfile::TempDir;

/// One file per transcript: `<project>/<session>/main` for the conversation, `<project>/<session>/sub/<subpath>` for
/// others. `/` of a subpath is written `%`.
pub(super) struct FolderStore(TempDir);

impl FolderStore {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn session(&self, key: &SessionKey) -> PathBuf {
        self.0.path().join(&key.project_key).join(&key.session_id)
    }

    fn file(&self, key: &SessionKey) -> PathBuf {
        match &key.subpath {
            None => self.session(key).join("main"),
            Some(subpath) => self.session(key).join("sub").join(subpath.replace('/', "%")),
        }
    }

    fn read(&self, key: &SessionKey) -> Result<Option<Vec<Value>>, SessionStoreError> {
        let text = match fs::read_to_string(self.file(key)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        Ok(Some(lines?))
    }

    fn add(&self, key: &SessionKey, entries: &[Value]) -> Result<(), SessionStoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let uuid = |entry: &Value| entry["uuid"].as_str().map(str::to_owned);
        let known = self.read(key)?.unwrap_or_default();
        let known: HashSet<String> = known.iter().filter_map(uuid).collect();
        let path = self.file(key);
        fs::create_dir_all(path.parent().unwrap())?;
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        for entry in entries {
            if uuid(entry).is_none_or(|uuid| !known.contains(&uuid)) {
                writeln!(file, "{entry}")?;
            }
        }
        Ok(())
    }

    /// The names in a folder; none if it does not exist.
    fn names(&self, folder: PathBuf) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    fn sessions(&self, project: &str) -> Result<Vec<StoredSession>, SessionStoreError> {
        let mut sessions = Vec::new();
        for id in self.names(self.0.path().join(project)) {
            if let Ok(meta) = fs::metadata(self.file(&SessionKey::new(project, &id))) {
                sessions.push(StoredSession::new(id, meta.modified()?));
            }
        }
        Ok(sessions)
    }

    fn remove(&self, key: &SessionKey) -> Result<(), SessionStoreError> {
        let removed = match key.subpath {
            None => fs::remove_dir_all(self.session(key)),
            Some(_) => fs::remove_file(self.file(key)),
        };
        match removed {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => Ok(removed?),
        }
    }
}

impl SessionStore for FolderStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> StoreFuture<'a, ()> {
        async { self.add(key, entries) }.boxed()
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>> {
        async { self.read(key) }.boxed()
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> StoreFuture<'a, Vec<StoredSession>> {
        async { self.sessions(project_key) }.boxed()
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ()> {
        async { self.remove(key) }.boxed()
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<String>> {
        async {
            let names = self.names(self.session(key).join("sub"));
            Ok(names.into_iter().map(|name| name.replace('%', "/")).collect())
        }
        .boxed()
    }
}
