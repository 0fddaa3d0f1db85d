//! What lies on a thread's desk to be answered: calls of the client's tools and questions, while the engine waits.
//!
//! The engine's callbacks put things here and wait; runs look at what is there, hand it to the client, and bring the
//! answers. What the engine no longer wants disappears.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler::mcp::Output;
use ostler::proto::control::CanUseTool;
use ostler::proto::tool::Question;
use ostler::{Answers, Decision};
use ostler_agui::event::{Body, Event};
use ostler_agui::patch::diff;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

/// A thread's desk. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    papers: Mutex<Papers>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Papers {
    calls: Vec<Call>,
    asks: Vec<Ask>,
    begun: BTreeSet<String>,
    state: Value,
    /// Changes of the state that no client has heard of.
    untold: Vec<Event>,
    next_number: u64,
}

#[derive(Debug)]
struct Call {
    id: String,
    answer: oneshot::Sender<Output>,
}

#[derive(Debug)]
struct Ask {
    id: String,
    question: AskKind,
    /// The call of the client's tool by which it is asked.
    by_call: Option<String>,
    answer: Reply,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum AskKind {
    /// Whether a call may run.
    Permission(Box<CanUseTool>),
    /// Something else.
    Question(Vec<Question>, Box<CanUseTool>),
}

impl AskKind {
    /// The call that it is about.
    pub(super) fn call(&self) -> &CanUseTool {
        match self {
            Self::Permission(call) | Self::Question(_, call) => call,
        }
    }

    pub(super) fn call_id(&self) -> String {
        self.call().tool_use_id.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

#[derive(Debug)]
enum Reply {
    Permission(oneshot::Sender<Decision>),
    Question(oneshot::Sender<Answers>),
}

/// An answer to what is asked.
pub(super) enum Answer {
    Decision(Decision),
    Answers(Answers),
}

/// Something that is asked, as others see it.
#[derive(Clone, Debug)]
pub(super) struct OpenAsk {
    pub(super) id: String,
    pub(super) question: AskKind,
    pub(super) by_call: Option<String>,
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

    // --- what the engine wants

    /// The client is to run a tool. Waits for the result, for as long as the engine wants it.
    pub(super) async fn call(&self, id: String) -> Output {
        let (answer, answered) = oneshot::channel();
        self.change(|papers| papers.calls.push(Call { id: id.clone(), answer }));
        let _taken_away = OnDrop::new(self.clone(), move |papers| {
            papers.calls.retain(|call| call.id != id);
        });
        let gone = |_| Output::error("The client's answer was lost; it may have gone.");
        answered.await.unwrap_or_else(gone)
    }

    /// Whether a call may run. Everything but a clear yes is a no.
    pub(super) async fn permission(&self, call: CanUseTool) -> Decision {
        let (answer, answered) = oneshot::channel();
        let _taken_away = self.ask(AskKind::Permission(Box::new(call)), Reply::Permission(answer));
        answered.await.unwrap_or_else(|_| Decision::deny("Nobody is there any more to allow it."))
    }

    /// What the user says to the agent's questions.
    pub(super) async fn question(&self, questions: Vec<Question>, call: CanUseTool) -> Answers {
        let (answer, answered) = oneshot::channel();
        let kind = AskKind::Question(questions, Box::new(call));
        let _taken_away = self.ask(kind, Reply::Question(answer));
        answered.await.unwrap_or_else(|_| Answers::decline("Nobody is there any more to answer."))
    }

    fn ask(&self, question: AskKind, answer: Reply) -> OnDrop {
        let id = self.change(|papers| {
            papers.next_number += 1;
            let call = question.call_id();
            let id = format!("ask-{}-{call}", papers.next_number);
            papers.asks.push(Ask { id: id.clone(), question, by_call: None, answer });
            id
        });
        OnDrop::new(self.clone(), move |papers| papers.asks.retain(|ask| ask.id != id))
    }

    /// A call begins to be dealt with.
    pub(super) fn begin(&self, call: String) {
        self.change(|papers| papers.begun.insert(call));
    }

    // --- what runs do with it

    /// Calls that wait for the client.
    pub(super) fn waiting_calls(&self) -> Vec<String> {
        self.papers().calls.iter().map(|call| call.id.clone()).collect()
    }

    /// What is asked and not answered.
    pub(super) fn open_asks(&self) -> Vec<OpenAsk> {
        let open = |ask: &Ask| OpenAsk {
            id: ask.id.clone(),
            question: ask.question.clone(),
            by_call: ask.by_call.clone(),
        };
        self.papers().asks.iter().map(open).collect()
    }

    /// Whether a turn waits for somebody.
    pub(super) fn is_waiting(&self) -> bool {
        let papers = self.papers();
        !papers.calls.is_empty() || !papers.asks.is_empty()
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

    /// Answers what is asked; whether it waited. The first answer counts.
    pub(super) fn answer_ask(&self, id: &str, answer: Answer) -> bool {
        let ask = self.change(|papers| {
            let place = papers.asks.iter().position(|ask| ask.id == id)?;
            Some(papers.asks.remove(place))
        });
        match (ask.map(|ask| ask.answer), answer) {
            (Some(Reply::Permission(reply)), Answer::Decision(decision)) => {
                reply.send(decision).is_ok()
            }
            (Some(Reply::Question(reply)), Answer::Answers(answers)) => reply.send(answers).is_ok(),
            // Dropping the other end is a no.
            _ => false,
        }
    }

    /// Notes by which call of the client's tool something is asked.
    pub(super) fn asked_by_call(&self, id: &str, call: &str) {
        if let Some(ask) = self.papers().asks.iter_mut().find(|ask| ask.id == id) {
            ask.by_call = Some(call.to_owned());
        }
    }

    // --- shared state

    pub(super) fn state(&self) -> Value {
        self.papers().state.clone()
    }

    /// Takes over what the client holds. What it was never told is dropped: it began anew.
    pub(super) fn set_state(&self, state: Value) {
        let mut papers = self.papers();
        papers.untold.clear();
        papers.state = state;
    }

    /// The agent changes the state; the client hears of the difference.
    pub(super) fn change_state(&self, change: impl FnOnce(&mut Value)) -> Value {
        self.change(|papers| {
            let mut after = papers.state.clone();
            change(&mut after);
            let delta = diff(&papers.state, &after);
            if !delta.is_empty() {
                papers.untold.push(Body::StateDelta { delta }.into());
            }
            papers.state = after.clone();
            after
        })
    }

    pub(super) fn take_untold(&self) -> Vec<Event> {
        std::mem::take(&mut self.papers().untold)
    }
}

type Tidying = Box<dyn FnOnce(&mut Papers) + Send>;

/// Takes a paper from the desk when nobody waits for its answer any more.
struct OnDrop {
    desk: Desk,
    work: Option<Tidying>,
}

impl OnDrop {
    fn new(desk: Desk, work: impl FnOnce(&mut Papers) + Send + 'static) -> Self {
        Self { desk, work: Some(Box::new(work)) }
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.desk.change(work);
        }
    }
}
