//! The order of events that official clients insist on, and the little more that the protocol asks for.
//!
//! A run that breaks one of these rules is thrown away by the client, so tests and debug builds have every stream pass
//! through here.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Body, Event, Outcome};

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {number}: {rule}")]
pub struct Violation {
    /// Which event, from 0.
    pub number: usize,
    /// What is wrong with it.
    pub rule: String,
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Before,
    Running,
    Finished,
    Failed,
}

/// Whose thing it is: `None` for the run itself.
type Owner = Option<String>;

/// Follows one stream of events.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    number: usize,
    phase: Phase,
    ids: (String, String),
    texts: Things,
    calls: Things,
    thoughts: Things,
    spans: Things,
    steps: BTreeSet<(Owner, String)>,
    subagents: BTreeMap<String, bool>,
    /// Calls of this run in order, and whether they are answered.
    answered: Vec<(String, bool)>,
    activities: BTreeSet<String>,
}

/// Things that are opened and closed by id, with their owners.
#[derive(Clone, Debug, Default)]
struct Things(BTreeMap<String, (Owner, bool)>);

impl Things {
    fn open(&mut self, what: &str, id: &str, owner: Owner) -> Result<(), String> {
        match self.0.get(id) {
            Some((_, true)) => return Err(format!("{what} {id:?} is open already")),
            Some((other, false)) if *other != owner => {
                return Err(format!("{what} {id:?} is opened again by somebody else"));
            }
            _ => {}
        }
        self.0.insert(id.to_owned(), (owner, true));
        Ok(())
    }

    fn go_on(&self, what: &str, id: &str, owner: &Owner) -> Result<(), String> {
        match self.0.get(id) {
            Some((opener, true)) if owner.is_none() || opener == owner => Ok(()),
            Some((_, true)) => Err(format!("{what} {id:?} goes on for somebody else")),
            _ => Err(format!("{what} {id:?} is not open")),
        }
    }

    fn close(&mut self, what: &str, id: &str, owner: &Owner) -> Result<(), String> {
        self.go_on(what, id, owner)?;
        if let Some(thing) = self.0.get_mut(id) {
            thing.1 = false;
        }
        Ok(())
    }

    fn none_open(&self, what: &str) -> Result<(), String> {
        match self.0.iter().find(|(_, (_, open))| *open) {
            Some((id, _)) => Err(format!("{what} {id:?} is still open when the run ends")),
            None => Ok(()),
        }
    }

    fn owner(&self, id: &str) -> Option<&Owner> {
        self.0.get(id).map(|(owner, _)| owner)
    }
}

impl Verifier {
    /// Takes the next event.
    ///
    /// # Errors
    /// When it may not come here.
    pub fn check(&mut self, event: &Event) -> Result<(), Violation> {
        let number = self.number;
        self.number += 1;
        self.rule(event).map_err(|rule| Violation { number, rule })
    }

    /// At the end of the stream.
    ///
    /// # Errors
    /// When a run has no end.
    pub fn finish(&self) -> Result<(), Violation> {
        let over = matches!(self.phase, Phase::Finished | Phase::Failed);
        let rule = || "the stream ends without an end of the run".to_owned();
        if over { Ok(()) } else { Err(Violation { number: self.number, rule: rule() }) }
    }

    fn rule(&mut self, event: &Event) -> Result<(), String> {
        self.phase_allows(&event.body)?;
        let owner = event.subagent_run_id().map(str::to_owned);
        match &event.body {
            Body::RunStarted { thread_id, run_id, .. } => {
                *self = Self { number: self.number, ..Self::default() };
                self.phase = Phase::Running;
                self.ids = (thread_id.clone(), run_id.clone());
                Ok(())
            }
            Body::RunFinished { thread_id, run_id, outcome, .. } => {
                self.end(thread_id, run_id, outcome.as_ref())
            }
            Body::RunError { .. } => {
                self.phase = Phase::Failed;
                Ok(())
            }
            Body::TextMessageStart { message_id, .. } => self.open_text(message_id, owner),
            Body::TextMessageContent { message_id, .. } => {
                self.texts.go_on("text", message_id, &owner)
            }
            Body::TextMessageEnd { message_id } => self.texts.close("text", message_id, &owner),
            Body::ToolCallStart { tool_call_id, parent_message_id, .. } => {
                self.open_call(tool_call_id, parent_message_id.as_deref(), owner)
            }
            Body::ToolCallArgs { tool_call_id, .. } => {
                self.calls.go_on("call", tool_call_id, &owner)
            }
            Body::ToolCallEnd { tool_call_id } => self.calls.close("call", tool_call_id, &owner),
            Body::ToolCallResult { tool_call_id, message_id, .. } => {
                self.answer(tool_call_id, message_id)
            }
            Body::ReasoningStart { message_id } => self.spans.open("span", message_id, owner),
            Body::ReasoningEnd { message_id } => self.spans.close("span", message_id, &owner),
            Body::ReasoningMessageStart { message_id, .. } => self.open_thought(message_id, owner),
            Body::ReasoningMessageContent { message_id, .. } => {
                self.thoughts.go_on("thought", message_id, &owner)
            }
            Body::ReasoningMessageEnd { message_id } => {
                self.thoughts.close("thought", message_id, &owner)
            }
            Body::StepStarted { step_name } => {
                let new = self.steps.insert((owner, step_name.clone()));
                if new { Ok(()) } else { Err(format!("step {step_name:?} is open already")) }
            }
            Body::StepFinished { step_name } => {
                let open = self.steps.remove(&(owner, step_name.clone()));
                if open { Ok(()) } else { Err(format!("step {step_name:?} is not open")) }
            }
            Body::SubagentStarted { subagent_run_id, parent_subagent_run_id, .. } => {
                self.begin_subagent(subagent_run_id, parent_subagent_run_id.as_deref())
            }
            Body::SubagentFinished { subagent_run_id, .. }
            | Body::SubagentError { subagent_run_id, .. } => {
                match self.subagents.get_mut(subagent_run_id) {
                    Some(active) if *active => {
                        *active = false;
                        Ok(())
                    }
                    _ => Err(format!("subagent {subagent_run_id:?} is not active")),
                }
            }
            Body::ActivitySnapshot { message_id, .. } => {
                self.activities.insert(message_id.clone());
                self.distinct(message_id)
            }
            Body::ActivityDelta { message_id, .. } => {
                let known = self.activities.contains(message_id);
                if known { Ok(()) } else { Err(format!("activity {message_id:?} has no snapshot")) }
            }
            Body::TextMessageChunk { .. }
            | Body::ToolCallChunk { .. }
            | Body::ReasoningMessageChunk { .. } => {
                Err("this producer writes no chunks".to_owned())
            }
            Body::StateSnapshot { .. }
            | Body::StateDelta { .. }
            | Body::MessagesSnapshot { .. }
            | Body::ReasoningEncryptedValue { .. }
            | Body::Raw { .. }
            | Body::Custom { .. } => Ok(()),
        }
    }

    fn phase_allows(&self, body: &Body) -> Result<(), String> {
        let (starts, fails) =
            (matches!(body, Body::RunStarted { .. }), matches!(body, Body::RunError { .. }));
        match self.phase {
            Phase::Before if starts || fails => Ok(()),
            Phase::Before => Err("a stream begins with RUN_STARTED or RUN_ERROR".to_owned()),
            Phase::Running if starts => Err("a run begins while another goes on".to_owned()),
            Phase::Running => Ok(()),
            Phase::Finished if starts || fails => Ok(()),
            Phase::Finished => Err("something comes after the end of the run".to_owned()),
            Phase::Failed if starts => Ok(()),
            Phase::Failed => Err("something comes after the failure of the run".to_owned()),
        }
    }

    fn open_text(&mut self, id: &str, owner: Owner) -> Result<(), String> {
        if self.thoughts.0.contains_key(id) || self.activities.contains(id) {
            return Err(format!("text {id:?} has the id of something else"));
        }
        self.texts.open("text", id, owner)
    }

    fn open_thought(&mut self, id: &str, owner: Owner) -> Result<(), String> {
        if self.texts.0.contains_key(id) || self.activities.contains(id) {
            return Err(format!("thought {id:?} has the id of something else"));
        }
        self.thoughts.open("thought", id, owner)
    }

    fn open_call(&mut self, id: &str, parent: Option<&str>, owner: Owner) -> Result<(), String> {
        let of_parent = parent.and_then(|parent| self.texts.owner(parent));
        if of_parent.is_some_and(|other| *other != owner) {
            return Err(format!("call {id:?} is in a message of somebody else"));
        }
        if self.calls.0.contains_key(id) {
            return Err(format!("call {id:?} is made twice"));
        }
        self.answered.push((id.to_owned(), false));
        self.calls.open("call", id, owner)
    }

    fn answer(&mut self, call: &str, message: &str) -> Result<(), String> {
        if call == message {
            return Err(format!("the result of {call:?} has the id of the call"));
        }
        if matches!(self.calls.0.get(call), Some((_, true))) {
            return Err(format!("call {call:?} is answered before it is complete"));
        }
        if let Some(made) = self.answered.iter_mut().find(|(id, _)| id == call) {
            if made.1 {
                return Err(format!("call {call:?} is answered twice"));
            }
            made.1 = true;
        }
        self.distinct(message)
    }

    fn distinct(&self, message: &str) -> Result<(), String> {
        let taken = [&self.texts, &self.thoughts].iter().any(|set| set.0.contains_key(message));
        if taken { Err(format!("{message:?} is the id of another message")) } else { Ok(()) }
    }

    fn begin_subagent(&mut self, id: &str, parent: Option<&str>) -> Result<(), String> {
        if parent.is_some_and(|parent| !self.subagents.contains_key(parent)) {
            return Err(format!("subagent {id:?} begins before the one it belongs to"));
        }
        match self.subagents.insert(id.to_owned(), true) {
            None => Ok(()),
            Some(_) => Err(format!("subagent {id:?} begins twice")),
        }
    }

    fn end(&mut self, thread: &str, run: &str, outcome: Option<&Outcome>) -> Result<(), String> {
        self.phase = Phase::Finished;
        if (thread, run) != (self.ids.0.as_str(), self.ids.1.as_str()) {
            return Err(format!("another run ends than began: {thread:?} {run:?}"));
        }
        self.texts.none_open("text")?;
        self.calls.none_open("call")?;
        self.thoughts.none_open("thought")?;
        self.spans.none_open("span")?;
        if let Some((_, step)) = self.steps.first() {
            return Err(format!("step {step:?} is still open when the run ends"));
        }
        if let Some((id, _)) = self.subagents.iter().find(|(_, active)| **active) {
            return Err(format!("subagent {id:?} is still active when the run ends"));
        }
        match outcome {
            Some(Outcome::Interrupt { interrupts }) => {
                let ids: BTreeSet<_> = interrupts.iter().map(|interrupt| &interrupt.id).collect();
                if interrupts.is_empty() || ids.len() != interrupts.len() {
                    return Err("an interrupt needs questions, each with its own id".to_owned());
                }
                Ok(())
            }
            Some(Outcome::Success { pending_tool_call_ids: Some(pending) }) => {
                let mut open = self.answered.iter().filter(|(_, answered)| !answered);
                // Calls of earlier runs may wait as well; those of this one must be listed, and in order.
                let listed = |(id, _): &(String, bool)| pending.contains(id);
                match open.find(|call| !listed(call)) {
                    Some((id, _)) => Err(format!("call {id:?} waits and is not listed")),
                    None if pending.is_empty() => Err("an empty list of pending calls".to_owned()),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
