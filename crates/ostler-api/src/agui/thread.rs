//! A thread: what is stored of it between runs, and the lock for its active run.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ostler_agui::history::Known;
use ostler_agui::translate::Counts;
use ostler_base::error::Fallible;
use ostler_core::model::run::Session;
use ostler_core::records::{Records, kept};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::page::Page;

/// What is stored of a thread. The conversation itself is in the log of its session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thread {
    /// The id of the session.
    pub(super) id: String,
    pub(super) owner: String,
    /// The first event of that session: an earlier, deleted session with the same id had another one.
    pub(super) begins: u64,
    pub(super) page: Page,
    pub(super) known: Known,
    pub(super) reported: BTreeMap<String, Counts>,
    /// The last message of the agent, by the engine's ids of conversation and message, so that the engine finds the
    /// place again.
    pub(super) here: Option<Place>,
    /// Calls that the client has answered or is to answer.
    pub(super) client_calls: BTreeSet<String>,
    /// Calls of the active turn that were sent without a result.
    pub(super) open_calls: BTreeSet<String>,
    /// Questions for which the client's own tool was called.
    pub(super) asked_by_call: BTreeSet<String>,
    pub(super) state: Value,
    /// The last event of the log that was sent to its clients.
    pub(super) told: u64,
    /// The run of the session that was sent last.
    pub(super) run: Option<String>,
}

impl Thread {
    /// A new, empty thread.
    pub(super) fn of(session: &Session) -> Self {
        let Session { id, owner, begins, .. } = session;
        Self { id: id.clone(), owner: owner.clone(), begins: *begins, ..Self::default() }
    }

    /// The stored thread of a session, if there is one.
    pub(super) async fn find(records: &Records, session: &Session) -> Fallible<Option<Self>> {
        let found = records.find::<Self>(&session.id).await?.map(|(thread, _)| thread);
        Ok(found.filter(|thread| thread.begins == session.begins))
    }
}

/// A place in the engine's conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) conversation: String,
    pub(super) message: String,
}

impl Place {
    /// Its text form in the history.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.conversation, self.message)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let (conversation, message) = name.split_once(' ')?;
        Some(Self { conversation: conversation.to_owned(), message: message.to_owned() })
    }
}

kept!(Thread, "thread");

/// Allows one run at a time on a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadLock {
    /// Locked by the active run.
    pub(super) word: Arc<tokio::sync::Mutex<()>>,
    /// Stops the active run.
    stop: Mutex<Option<CancellationToken>>,
}

impl ThreadLock {
    /// Begins a run, which ends when the result is dropped.
    pub(super) fn begin(&self) -> Running<'_> {
        let stop = CancellationToken::new();
        *lock(&self.stop) = Some(stop.clone());
        Running { thread_lock: self, stop }
    }

    /// Stops the active run, if there is one.
    pub(super) fn stop(&self) -> bool {
        let token = lock(&self.stop).clone();
        token.is_some_and(|token| {
            token.cancel();
            true
        })
    }
}

/// An active run.
pub(super) struct Running<'a> {
    thread_lock: &'a ThreadLock,
    /// Fires when the run is to stop.
    pub(super) stop: CancellationToken,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *lock(&self.thread_lock.stop) = None;
    }
}

/// The locks of all threads in use, by session.
#[derive(Debug, Default)]
pub(super) struct ThreadLocks(Mutex<HashMap<String, Arc<ThreadLock>>>);

impl ThreadLocks {
    pub(super) fn of(&self, session: &str) -> Arc<ThreadLock> {
        let mut thread_locks = lock(&self.0);
        if let Some(thread_lock) = thread_locks.get(session) {
            return Arc::clone(thread_lock);
        }
        thread_locks.retain(|_, thread_lock| Arc::strong_count(thread_lock) > 1);
        Arc::clone(thread_locks.entry(session.to_owned()).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_lock_while_it_is_in_use() {
        let thread_locks = ThreadLocks::default();
        let one = thread_locks.of("a");
        assert!(Arc::ptr_eq(&one, &thread_locks.of("a")));
        thread_locks.of("b");
        thread_locks.of("c");
        assert_eq!(
            lock(&thread_locks.0).len(),
            2,
            "the unused lock of b was removed when c was added"
        );
        assert!(Arc::ptr_eq(&one, &thread_locks.of("a")));
    }

    #[test]
    fn only_an_active_run_can_be_stopped() {
        let thread_lock = ThreadLock::default();
        assert!(!thread_lock.stop());
        let running = thread_lock.begin();
        assert!(thread_lock.stop() && running.stop.is_cancelled());
        drop(running);
        assert!(!thread_lock.stop());
    }

    #[test]
    fn a_place_is_found_by_its_name() {
        let place = Place { conversation: "c-1".into(), message: "m-2".into() };
        assert_eq!(Place::named(&place.name()), Some(place));
        assert_eq!(Place::named("nowhere"), None);
    }
}
