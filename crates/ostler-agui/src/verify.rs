//! The order of events that official clients require, and a few more rules of the protocol.
//!
//! A client discards a run that breaks a rule, so tests and debug builds verify every stream.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Body, Event, Outcome};

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {number}: {rule}")]
pub struct Violation {
    /// The index of the event, from 0.
    pub number: usize,
    /// How the event breaks a rule.
    pub rule: String,
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Before,
    Running,
    Finished,
    Failed,
}

/// A subagent; `None` for the run itself.
type Owner = Option<String>;

/// Verifies one stream of events.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    number: usize,
    phase: Phase,
    ids: (String, String),
    texts: OpenItems,
    calls: OpenItems,
    thoughts: OpenItems,
    spans: OpenItems,
    steps: BTreeSet<(Owner, String)>,
    subagents: BTreeMap<String, bool>,
    /// Calls of this run in order, and whether they are answered.
    answered: Vec<(String, bool)>,
    activities: BTreeSet<String>,
}

/// Items that are opened and closed by id, with their owners.
#[derive(Clone, Debug, Default)]
struct OpenItems(BTreeMap<String, (Owner, bool)>);

impl OpenItems {
    fn open(&mut self, what: &str, id: &str, owner: Owner) -> Result<(), String> {
        match self.0.get(id) {
            Some((_, true)) => return Err(format!("{what} {id:?} is open already")),
            Some((other, false)) if *other != owner => {
                return Err(format!("{what} {id:?} is opened again by another agent"));
            }
            _ => {}
        }
        self.0.insert(id.to_owned(), (owner, true));
        Ok(())
    }

    fn check_open(&self, what: &str, id: &str, owner: &Owner) -> Result<(), String> {
        match self.0.get(id) {
            Some((opener, true)) if owner.is_none() || opener == owner => Ok(()),
            Some((_, true)) => Err(format!("{what} {id:?} belongs to another agent")),
            _ => Err(format!("{what} {id:?} is not open")),
        }
    }

    fn close(&mut self, what: &str, id: &str, owner: &Owner) -> Result<(), String> {
        self.check_open(what, id, owner)?;
        if let Some(item) = self.0.get_mut(id) {
            item.1 = false;
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
    /// Verifies the next event.
    ///
    /// # Errors
    /// If the event is not allowed at this point.
    pub fn check(&mut self, event: &Event) -> Result<(), Violation> {
        let number = self.number;
        self.number += 1;
        self.rule(event).map_err(|rule| Violation { number, rule })
    }

    /// Verifies the end of the stream.
    ///
    /// # Errors
    /// If a run has no end.
    pub fn finish(&self) -> Result<(), Violation> {
        let over = matches!(self.phase, Phase::Finished | Phase::Failed);
        let rule = || "the stream ends without RUN_FINISHED or RUN_ERROR".to_owned();
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
                self.texts.check_open("text", message_id, &owner)
            }
            Body::TextMessageEnd { message_id } => self.texts.close("text", message_id, &owner),
            Body::ToolCallStart { tool_call_id, parent_message_id, .. } => {
                self.open_call(tool_call_id, parent_message_id.as_deref(), owner)
            }
            Body::ToolCallArgs { tool_call_id, .. } => {
                self.calls.check_open("call", tool_call_id, &owner)
            }
            Body::ToolCallEnd { tool_call_id } => self.calls.close("call", tool_call_id, &owner),
            Body::ToolCallResult { tool_call_id, message_id, .. } => {
                self.answer(tool_call_id, message_id)
            }
            Body::ReasoningStart { message_id } => self.spans.open("span", message_id, owner),
            Body::ReasoningEnd { message_id } => self.spans.close("span", message_id, &owner),
            Body::ReasoningMessageStart { message_id, .. } => self.open_thought(message_id, owner),
            Body::ReasoningMessageContent { message_id, .. } => {
                self.thoughts.check_open("thought", message_id, &owner)
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
                Err("chunk events are not allowed here".to_owned())
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
            Phase::Running if starts => Err("a run starts while another is active".to_owned()),
            Phase::Running => Ok(()),
            Phase::Finished if starts || fails => Ok(()),
            Phase::Finished => Err("an event follows the end of the run".to_owned()),
            Phase::Failed if starts => Ok(()),
            Phase::Failed => Err("an event follows the failure of the run".to_owned()),
        }
    }

    fn open_text(&mut self, id: &str, owner: Owner) -> Result<(), String> {
        if self.thoughts.0.contains_key(id) || self.activities.contains(id) {
            return Err(format!("text {id:?} has the id of another message"));
        }
        self.texts.open("text", id, owner)
    }

    fn open_thought(&mut self, id: &str, owner: Owner) -> Result<(), String> {
        if self.texts.0.contains_key(id) || self.activities.contains(id) {
            return Err(format!("reasoning {id:?} has the id of another message"));
        }
        self.thoughts.open("thought", id, owner)
    }

    fn open_call(&mut self, id: &str, parent: Option<&str>, owner: Owner) -> Result<(), String> {
        let of_parent = parent.and_then(|parent| self.texts.owner(parent));
        if of_parent.is_some_and(|other| *other != owner) {
            return Err(format!("call {id:?} is in a message of another agent"));
        }
        if self.calls.0.contains_key(id) {
            return Err(format!("call {id:?} starts twice"));
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
            return Err(format!("subagent {id:?} starts before its parent"));
        }
        match self.subagents.insert(id.to_owned(), true) {
            None => Ok(()),
            Some(_) => Err(format!("subagent {id:?} starts twice")),
        }
    }

    fn end(&mut self, thread: &str, run: &str, outcome: Option<&Outcome>) -> Result<(), String> {
        self.phase = Phase::Finished;
        if (thread, run) != (self.ids.0.as_str(), self.ids.1.as_str()) {
            return Err(format!(
                "the run that ends is not the one that started: {thread:?} {run:?}"
            ));
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
                // Calls of earlier runs may be pending as well; those of this run must be listed, in order.
                let listed = |(id, _): &(String, bool)| pending.contains(id);
                match open.find(|call| !listed(call)) {
                    Some((id, _)) => Err(format!("call {id:?} is pending and not listed")),
                    None if pending.is_empty() => Err("an empty list of pending calls".to_owned()),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
