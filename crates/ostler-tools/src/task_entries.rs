//! The session's task list, shared by `TaskCreate`, `TaskUpdate`, `TaskGet` and `TaskList`.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use ostler_engine::tool::TaskEntry;
use ostler_proto::tool::TaskStatus;
use serde_json::{Map, Value};

/// The most entries of a list.
pub(crate) const MAX_ENTRIES: usize = 200;

/// The list. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskEntries(Arc<Mutex<List>>);

/// The contents of the list.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) entries: Vec<Entry>,
    n_made: u64,
}

/// One entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) description: String,
    pub(crate) active_form: Option<String>,
    pub(crate) status: TaskStatus,
    pub(crate) owner: Option<String>,
    /// Entries it waits for. The other direction is stored in those that wait.
    pub(crate) blocked_by: Vec<String>,
    pub(crate) metadata: Map<String, Value>,
}

impl TaskEntries {
    pub(crate) fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock()
    }
}

impl List {
    /// A number that no entry has had.
    pub(crate) fn next_id(&mut self) -> String {
        self.n_made += 1;
        self.n_made.to_string()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }

    /// Entries that wait for this one.
    pub(crate) fn blocks(&self, id: &str) -> Vec<String> {
        let waits = |entry: &&Entry| entry.blocked_by.iter().any(|other| other == id);
        self.entries.iter().filter(waits).map(|entry| entry.id.clone()).collect()
    }

    /// Unfinished entries that this one waits for.
    pub(crate) fn waits_for(&self, entry: &Entry) -> Vec<String> {
        let is_open =
            |id: &&String| self.get(id).is_some_and(|other| other.status != TaskStatus::Completed);
        entry.blocked_by.iter().filter(is_open).cloned().collect()
    }

    /// Makes an entry wait for another.
    pub(crate) fn wait(&mut self, id: &str, other: &str) {
        if let Some(entry) = self.get_mut(id)
            && !entry.blocked_by.iter().any(|known| known == other)
        {
            entry.blocked_by.push(other.to_owned());
        }
    }

    /// Removes an entry; nothing waits for it any more.
    pub(crate) fn remove(&mut self, id: &str) {
        self.entries.retain(|entry| entry.id != id);
        for entry in &mut self.entries {
            entry.blocked_by.retain(|other| other != id);
        }
    }
}

impl Entry {
    /// The entry in the format for hooks.
    pub(crate) fn for_hooks(&self) -> TaskEntry {
        let Self { id, subject, description, .. } = self.clone();
        TaskEntry { id, subject, description }
    }
}
