//! Calls of a page's tools that wait for the page, and the state that page and agent share; one value per thread.
//!
//! The engine's callbacks add calls here and wait. Runs read the calls, send them to the client, and bring the answers.
//! A call that the engine no longer needs is removed.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use ostler::mcp::Output;
use ostler_agui::patch::diff;
use ostler_base::error::{self, Fallible};
use ostler_core::log_writers::LogWriters;
use ostler_core::model::event;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

/// The waiting calls of all threads in use.
pub struct ThreadToolCalls {
    log_writers: Arc<LogWriters>,
    thread_tool_calls: Mutex<HashMap<String, Weak<Shared>>>,
}

impl ThreadToolCalls {
    pub fn new(log_writers: Arc<LogWriters>) -> Self {
        Self { log_writers, thread_tool_calls: Mutex::default() }
    }

    /// The calls of a session. They are removed when nothing uses them any more.
    pub(super) fn of(&self, session: &str) -> ClientToolCalls {
        let mut thread_tool_calls = self.thread_tool_calls.lock();
        if let Some(tool_calls) = thread_tool_calls.get(session).and_then(Weak::upgrade) {
            return ClientToolCalls(tool_calls);
        }
        thread_tool_calls.retain(|_, tool_calls| tool_calls.strong_count() > 0);
        let tool_calls = Arc::new(Shared {
            log_writers: Arc::clone(&self.log_writers),
            session: session.to_owned(),
            pending: Mutex::default(),
            state: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        });
        thread_tool_calls.insert(session.to_owned(), Arc::downgrade(&tool_calls));
        ClientToolCalls(tool_calls)
    }
}

/// The waiting calls of one thread. Cheap to clone.
#[derive(Clone)]
pub(super) struct ClientToolCalls(Arc<Shared>);

struct Shared {
    log_writers: Arc<LogWriters>,
    session: String,
    pending: Mutex<PendingCalls>,
    /// Locked while a change is written to the log, so that changes are sent in their order.
    state: tokio::sync::Mutex<Value>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct PendingCalls {
    calls: Vec<Call>,
    begun: BTreeSet<String>,
}

#[derive(Debug)]
struct Call {
    id: String,
    answer: oneshot::Sender<Output>,
}

impl ClientToolCalls {
    fn pending(&self) -> MutexGuard<'_, PendingCalls> {
        // A panic cannot leave it inconsistent: every change is one step.
        self.0.pending.lock()
    }

    fn change<T>(&self, work: impl FnOnce(&mut PendingCalls) -> T) -> T {
        let result = work(&mut self.pending());
        self.0.changed.notify_one();
        result
    }

    /// Waits for a change. A change since the last call counts.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Asks the client to run a tool. Waits for the result, for as long as the engine needs it.
    pub(super) async fn call(&self, id: String) -> Output {
        let (answer, answered) = oneshot::channel();
        self.change(|pending| pending.calls.push(Call { id: id.clone(), answer }));
        let _taken_away = TakeAway { tool_calls: self.clone(), call: id };
        let gone =
            |_| Output::error("The client's answer was lost; the client may have disconnected.");
        answered.await.unwrap_or_else(gone)
    }

    /// Notes that the engine has begun a call.
    pub(super) fn begin(&self, call: String) {
        self.change(|pending| pending.begun.insert(call));
    }

    /// Removes all calls, because another turn begins.
    pub(super) fn clear(&self) {
        self.change(|pending| pending.begun.clear());
    }

    /// The ids of calls that wait for the client.
    pub(super) fn waiting_calls(&self) -> Vec<String> {
        self.pending().calls.iter().map(|call| call.id.clone()).collect()
    }

    pub(super) fn begun(&self) -> BTreeSet<String> {
        self.pending().begun.clone()
    }

    /// Answers a call; returns whether it was waiting.
    pub(super) fn answer_call(&self, id: &str, output: Output) -> bool {
        let call = self.change(|pending| {
            let place = pending.calls.iter().position(|call| call.id == id)?;
            Some(pending.calls.remove(place))
        });
        call.is_some_and(|call| call.answer.send(output).is_ok())
    }

    pub(super) async fn state(&self) -> Value {
        self.0.state.lock().await.clone()
    }

    /// Replaces the state by that of the client.
    pub(super) async fn set_state(&self, state: Value) {
        *self.0.state.lock().await = state;
    }

    /// Changes the state for the agent; the difference is in the log before clients see it.
    pub(super) async fn change_state(&self, change: impl FnOnce(&mut Value)) -> Fallible<Value> {
        let mut state = self.0.state.lock().await;
        let mut after = state.clone();
        change(&mut after);
        let delta = diff(&state, &after);
        if !delta.is_empty() {
            let event = event::shared_state(&json!(delta))?;
            let written = self.0.log_writers.write(&self.0.session, vec![event], Vec::new()).await;
            written.map_err(error::internal)?;
        }
        state.clone_from(&after);
        Ok(after)
    }
}

/// Removes a call on drop, when nothing waits for its answer any more.
struct TakeAway {
    tool_calls: ClientToolCalls,
    call: String,
}

impl Drop for TakeAway {
    fn drop(&mut self) {
        self.tool_calls.change(|pending| pending.calls.retain(|call| call.id != self.call));
    }
}
