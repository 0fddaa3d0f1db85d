//! [`InMemorySessionStore`].

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use serde_json::Value;

use super::{SessionKey, SessionStore, StoreFuture, StoredSession};

/// A store in memory, for tests and as an example. Its content is lost when the process ends.
#[derive(Debug, Default)]
pub struct InMemorySessionStore {
    transcripts: Mutex<BTreeMap<SessionKey, Transcript>>,
}

#[derive(Debug)]
struct Transcript {
    entries: Vec<Value>,
    /// The uuids of the entries that have one.
    uuids: HashSet<String>,
    modified: SystemTime,
}

impl InMemorySessionStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The keys of all transcripts, in order.
    pub fn keys(&self) -> Vec<SessionKey> {
        self.transcripts().keys().cloned().collect()
    }

    /// The lines of a transcript; empty if there are none.
    pub fn entries(&self, key: &SessionKey) -> Vec<Value> {
        self.transcripts().get(key).map(|it| it.entries.clone()).unwrap_or_default()
    }

    fn transcripts(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Transcript>> {
        self.transcripts.lock()
    }

    fn add(&self, key: &SessionKey, entries: &[Value]) {
        if entries.is_empty() {
            return;
        }
        let mut transcripts = self.transcripts();
        // Two appends in one tick of the clock must have different times: `continue_newest` compares them.
        let newest = transcripts.values().map(|it| it.modified).max();
        let next = newest.map(|newest| newest + Duration::from_millis(1));
        let modified = next.map_or_else(SystemTime::now, |next| next.max(SystemTime::now()));
        let empty = || Transcript { entries: Vec::new(), uuids: HashSet::new(), modified };
        let transcript = transcripts.entry(key.clone()).or_insert_with(empty);
        transcript.modified = modified;
        for entry in entries {
            let uuid = entry.get("uuid").and_then(Value::as_str);
            if uuid.is_none_or(|uuid| transcript.uuids.insert(uuid.to_owned())) {
                transcript.entries.push(entry.clone());
            }
        }
    }
}

impl SessionStore for InMemorySessionStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> StoreFuture<'a, ()> {
        self.add(key, entries);
        std::future::ready(Ok(())).boxed()
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>> {
        let entries = self.transcripts().get(key).map(|it| it.entries.clone());
        std::future::ready(Ok(entries)).boxed()
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> StoreFuture<'a, Vec<StoredSession>> {
        let transcripts = self.transcripts();
        let sessions = transcripts
            .iter()
            .filter(|(key, _)| key.project_key == project_key && key.subpath.is_none())
            .map(|(key, it)| StoredSession::new(&key.session_id, it.modified))
            .collect();
        std::future::ready(Ok(sessions)).boxed()
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, ()> {
        self.transcripts().retain(|it, _| match key.subpath {
            Some(_) => it != key,
            None => it.project_key != key.project_key || it.session_id != key.session_id,
        });
        std::future::ready(Ok(())).boxed()
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<String>> {
        let transcripts = self.transcripts();
        let subpaths = transcripts
            .keys()
            .filter(|it| it.project_key == key.project_key && it.session_id == key.session_id)
            .filter_map(|it| it.subpath.clone())
            .collect();
        std::future::ready(Ok(subpaths)).boxed()
    }
}
