//! The threads of every caller: found by caller and name together, one run at a time, forgotten when they rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ostler_agui::history::Known;
use ostler_agui::translate::Counts;
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::desk::Desk;
use super::session::Session;

/// Whose thread, and which. The name alone is the client's choice and opens nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) caller: String,
    pub(super) thread: String,
}

/// A thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Held by the run that is going on.
    pub(super) work: Arc<tokio::sync::Mutex<Work>>,
    pub(super) desk: Desk,
    /// Stops the run that is going on.
    stop: Mutex<Option<CancellationToken>>,
    rests_since: Mutex<Option<Instant>>,
}

/// What a run works with.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) session: Option<Session>,
    /// The engine's name for the conversation, to go on with it.
    pub(super) engine_session: Option<String>,
    /// The last thing the agent said, by the engine's names for conversation and message: there it finds the place again.
    pub(super) here: Option<String>,
    pub(super) known: Known,
    pub(super) reported: BTreeMap<String, Counts>,
    /// Subagents work in the background, and will report.
    pub(super) agents_work: bool,
    /// Calls that the client has answered or is to answer.
    pub(super) client_calls: BTreeSet<String>,
}

impl Work {
    /// Forgets the conversation.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Thread {
    /// A run begins, and is over when what is returned is dropped.
    pub(super) fn begin(&self) -> Running<'_> {
        let stop = CancellationToken::new();
        *lock(&self.stop) = Some(stop.clone());
        *lock(&self.rests_since) = None;
        Running { thread: self, stop }
    }

    /// Stops the run that is going on, if there is one.
    pub(super) fn stop(&self) -> bool {
        let token = lock(&self.stop).clone();
        token.is_some_and(|token| {
            token.cancel();
            true
        })
    }

    fn rests_for(&self) -> Option<Duration> {
        lock(&self.rests_since).map(|since| since.elapsed())
    }

    fn is_stale(&self, config: &Config) -> bool {
        let limit =
            if self.desk.is_waiting() { config.waiting_limit } else { Some(config.idle_limit) };
        limit.is_some_and(|limit| self.rests_for().is_some_and(|rest| rest > limit))
    }
}

/// A run that is going on.
pub(super) struct Running<'a> {
    thread: &'a Thread,
    /// Fires when somebody wants it stopped.
    pub(super) stop: CancellationToken,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *lock(&self.thread.stop) = None;
        *lock(&self.thread.rests_since) = Some(Instant::now());
    }
}

/// All threads. One per caller and name, however many ask at once.
#[derive(Debug, Default)]
pub(super) struct Threads(Mutex<BTreeMap<Key, Arc<Thread>>>);

impl Threads {
    /// Finds a thread or begins one.
    pub(super) fn open(&self, key: &Key, config: &Config) -> Arc<Thread> {
        let mut threads = lock(&self.0);
        if let Some(thread) = threads.get(key) {
            return Arc::clone(thread);
        }
        make_room(&mut threads, &key.caller, config.max_threads_per_caller);
        let thread = Arc::<Thread>::default();
        threads.insert(key.clone(), Arc::clone(&thread));
        thread
    }

    /// Finds a thread.
    pub(super) fn find(&self, key: &Key) -> Option<Arc<Thread>> {
        lock(&self.0).get(key).cloned()
    }

    /// Forgets threads that have rested too long.
    pub(super) fn sweep(&self, config: &Config) {
        let stale: Vec<Arc<Thread>> = {
            let mut threads = lock(&self.0);
            let keys: Vec<Key> = threads
                .iter()
                .filter(|(_, thread)| thread.is_stale(config))
                .map(|(key, _)| key.clone())
                .collect();
            keys.iter().filter_map(|key| threads.remove(key)).collect()
        };
        // Engines end with their sessions, outside of the lock.
        drop(stale);
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

/// Forgets the thread of a caller that rests longest, where there are too many. One that waits is not forgotten.
fn make_room(threads: &mut BTreeMap<Key, Arc<Thread>>, caller: &str, most: usize) {
    let own = threads.iter().filter(|(key, _)| key.caller == caller);
    if own.clone().count() < most {
        return;
    }
    let resting = own.filter(|(_, thread)| !thread.desk.is_waiting());
    let since = |thread: &Thread| *lock(&thread.rests_since);
    let longest = resting.filter_map(|(key, thread)| Some((since(thread)?, key.clone()))).min();
    if let Some((_, key)) = longest {
        threads.remove(&key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(caller: &str, thread: &str) -> Key {
        Key { caller: caller.into(), thread: thread.into() }
    }

    fn config() -> Config {
        Config::new(|_| ostler::Options::new())
    }

    #[test]
    fn a_thread_is_its_callers_alone() {
        let threads = Threads::default();
        let anns = threads.open(&key("ann", "t"), &config());
        assert!(Arc::ptr_eq(&anns, &threads.open(&key("ann", "t"), &config())));
        assert!(!Arc::ptr_eq(&anns, &threads.open(&key("bob", "t"), &config())));
        assert!(threads.find(&key("eve", "t")).is_none());
    }

    #[test]
    fn threads_that_rest_are_forgotten_and_those_that_run_are_not() {
        let mut config = config();
        config.idle_limit = Duration::ZERO;
        let threads = Threads::default();
        let resting = threads.open(&key("ann", "rests"), &config);
        drop(resting.begin());
        let thread = threads.open(&key("ann", "runs"), &config);
        let _running = thread.begin();
        threads.sweep(&config);
        assert!(threads.find(&key("ann", "rests")).is_none());
        assert!(threads.find(&key("ann", "runs")).is_some());
    }

    #[tokio::test]
    async fn a_thread_that_waits_is_kept_up_to_its_own_limit() {
        let mut config = config();
        config.idle_limit = Duration::ZERO;
        let threads = Threads::default();
        let thread = threads.open(&key("ann", "t"), &config);
        drop(thread.begin());
        let desk = thread.desk.clone();
        let mut call = Box::pin(desk.call("c1".into()));
        assert!(futures::poll!(&mut call).is_pending());
        threads.sweep(&config);
        assert!(threads.find(&key("ann", "t")).is_some());
        config.waiting_limit = Some(Duration::ZERO);
        threads.sweep(&config);
        assert!(threads.find(&key("ann", "t")).is_none());
    }

    #[test]
    fn too_many_threads_cost_a_caller_the_oldest_of_their_own() {
        let mut config = config();
        config.max_threads_per_caller = 2;
        let threads = Threads::default();
        for name in ["1", "2"] {
            let thread = threads.open(&key("ann", name), &config);
            drop(thread.begin());
        }
        threads.open(&key("bob", "1"), &config);
        threads.open(&key("ann", "3"), &config);
        assert!(threads.find(&key("ann", "1")).is_none());
        assert!(threads.find(&key("ann", "2")).is_some());
        assert!(threads.find(&key("bob", "1")).is_some());
    }
}
