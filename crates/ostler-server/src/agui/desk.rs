//! What lies on a thread's desk while its engine waits: calls of the page's tools, and the state they share.
//!
//! The engine's callbacks put things here and wait; runs look at what is there, hand it to the client, and bring the
//! answers. What the engine no longer wants disappears.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ostler::mcp::Output;
use ostler_agui::patch::diff;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::error::{self, Fallible};
use crate::log_writers::LogWriters;
use crate::model::event;

/// The desks of all threads that are in use.
pub(crate) struct Desks {
    log_writers: Arc<LogWriters>,
    desks: Mutex<HashMap<String, Weak<Shared>>>,
}

impl Desks {
    pub(crate) fn new(log_writers: Arc<LogWriters>) -> Self {
        Self { log_writers, desks: Mutex::default() }
    }

    /// The desk of a session. It is gone when nobody uses it any more.
    pub(super) fn of(&self, session: &str) -> Desk {
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = desks.get(session).and_then(Weak::upgrade) {
            return Desk(desk);
        }
        desks.retain(|_, desk| desk.strong_count() > 0);
        let desk = Arc::new(Shared {
            log_writers: Arc::clone(&self.log_writers),
            session: session.to_owned(),
            papers: Mutex::default(),
            state: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        });
        desks.insert(session.to_owned(), Arc::downgrade(&desk));
        Desk(desk)
    }
}

/// A thread's desk. Cheap to clone.
#[derive(Clone)]
pub(super) struct Desk(Arc<Shared>);

struct Shared {
    log_writers: Arc<LogWriters>,
    session: String,
    papers: Mutex<Papers>,
    /// Held while a change of it is written down, so that changes are told in their order.
    state: tokio::sync::Mutex<Value>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Papers {
    calls: Vec<Call>,
    begun: BTreeSet<String>,
}

#[derive(Debug)]
struct Call {
    id: String,
    answer: oneshot::Sender<Output>,
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        // Whoever panicked while holding it left whole papers behind: every change is one step.
        self.0.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, work: impl FnOnce(&mut Papers) -> T) -> T {
        let result = work(&mut self.papers());
        self.0.changed.notify_one();
        result
    }

    /// Waits for something to happen here. One that happened since the last time counts.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// The client is to run a tool. Waits for the result, for as long as the engine wants it.
    pub(super) async fn call(&self, id: String) -> Output {
        let (answer, answered) = oneshot::channel();
        self.change(|papers| papers.calls.push(Call { id: id.clone(), answer }));
        let _taken_away = TakeAway { desk: self.clone(), call: id };
        let gone = |_| Output::error("The client's answer was lost; it may have gone.");
        answered.await.unwrap_or_else(gone)
    }

    /// A call begins to be dealt with.
    pub(super) fn begin(&self, call: String) {
        self.change(|papers| papers.begun.insert(call));
    }

    /// Another turn begins, with other calls.
    pub(super) fn clear(&self) {
        self.change(|papers| papers.begun.clear());
    }

    /// Calls that wait for the client.
    pub(super) fn waiting_calls(&self) -> Vec<String> {
        self.papers().calls.iter().map(|call| call.id.clone()).collect()
    }

    pub(super) fn begun(&self) -> BTreeSet<String> {
        self.papers().begun.clone()
    }

    /// Answers a call; whether it waited.
    pub(super) fn answer_call(&self, id: &str, output: Output) -> bool {
        let call = self.change(|papers| {
            let place = papers.calls.iter().position(|call| call.id == id)?;
            Some(papers.calls.remove(place))
        });
        call.is_some_and(|call| call.answer.send(output).is_ok())
    }

    pub(super) async fn state(&self) -> Value {
        self.0.state.lock().await.clone()
    }

    /// Takes over what the client holds.
    pub(super) async fn set_state(&self, state: Value) {
        *self.0.state.lock().await = state;
    }

    /// The agent changes the state; the difference is in the log before anybody sees it.
    pub(super) async fn change_state(&self, change: impl FnOnce(&mut Value)) -> Fallible<Value> {
        let mut state = self.0.state.lock().await;
        let mut after = state.clone();
        change(&mut after);
        let delta = diff(&state, &after);
        if !delta.is_empty() {
            let told = event::shared_state(&json!(delta))?;
            let written = self.0.log_writers.write(&self.0.session, vec![told], Vec::new()).await;
            written.map_err(error::internal)?;
        }
        state.clone_from(&after);
        Ok(after)
    }
}

/// Takes a call from the desk when nobody waits for its answer any more.
struct TakeAway {
    desk: Desk,
    call: String,
}

impl Drop for TakeAway {
    fn drop(&mut self) {
        self.desk.change(|papers| papers.calls.retain(|call| call.id != self.call));
    }
}
