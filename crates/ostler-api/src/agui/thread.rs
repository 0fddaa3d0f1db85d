//! A thread: what is remembered of it between runs, and who has the word just now.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_agui::history::Known;
use ostler_agui::translate::Counts;
use ostler_base::error::Fallible;
use ostler_core::model::run::Session;
use ostler_core::records::{Records, kept};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::page::Page;

/// What is remembered of a thread. The conversation itself is in the log of its session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thread {
    /// The session.
    pub(super) id: String,
    pub(super) owner: String,
    /// Where that session begins: one of the same name that was forgotten before has another beginning.
    pub(super) begins: u64,
    pub(super) page: Page,
    pub(super) known: Known,
    pub(super) reported: BTreeMap<String, Counts>,
    /// The last thing the agent said, by the engine's names for conversation and message: there it finds the place again.
    pub(super) here: Option<Place>,
    /// Calls that the client has answered or is to answer.
    pub(super) client_calls: BTreeSet<String>,
    /// Calls of the turn that is under way, told and without an answer when they were.
    pub(super) open_calls: BTreeSet<String>,
    /// Questions for which the client's own tool was called.
    pub(super) asked_by_call: BTreeSet<String>,
    pub(super) state: Value,
    /// Up to where in the log its clients were told.
    pub(super) told: u64,
    /// The run of the session that was told of last.
    pub(super) run: Option<String>,
}

impl Thread {
    /// A thread on which nothing was said.
    pub(super) fn of(session: &Session) -> Self {
        let Session { id, owner, begins, .. } = session;
        Self { id: id.clone(), owner: owner.clone(), begins: *begins, ..Self::default() }
    }

    /// What is remembered of a session's thread, if there is anything.
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
    /// As history keeps it.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.conversation, self.message)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let (conversation, message) = name.split_once(' ')?;
        Some(Self { conversation: conversation.to_owned(), message: message.to_owned() })
    }
}

kept!(Thread, "thread");

/// Keeps the runs on a thread apart: one at a time.
#[derive(Debug, Default)]
pub(super) struct ThreadLock {
    /// Held by the run that is going on.
    pub(super) word: Arc<tokio::sync::Mutex<()>>,
    /// Stops the run that is going on.
    stop: Mutex<Option<CancellationToken>>,
}

impl ThreadLock {
    /// A run begins, and is over when what is returned is dropped.
    pub(super) fn begin(&self) -> Running<'_> {
        let stop = CancellationToken::new();
        *lock(&self.stop) = Some(stop.clone());
        Running { thread_lock: self, stop }
    }

    /// Stops the run that is going on, if there is one.
    pub(super) fn stop(&self) -> bool {
        let token = lock(&self.stop).clone();
        token.is_some_and(|token| {
            token.cancel();
            true
        })
    }
}

/// A run that is going on.
pub(super) struct Running<'a> {
    thread_lock: &'a ThreadLock,
    /// Fires when somebody wants it stopped.
    pub(super) stop: CancellationToken,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *lock(&self.thread_lock.stop) = None;
    }
}

/// The locks of all threads that are in use, by session.
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
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_floor_for_as_long_as_it_is_in_use() {
        let thread_locks = ThreadLocks::default();
        let one = thread_locks.of("a");
        assert!(Arc::ptr_eq(&one, &thread_locks.of("a")));
        thread_locks.of("b");
        thread_locks.of("c");
        assert_eq!(lock(&thread_locks.0).len(), 2, "b was not in use any more when c came");
        assert!(Arc::ptr_eq(&one, &thread_locks.of("a")));
    }

    #[test]
    fn only_a_run_that_goes_on_can_be_stopped() {
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
