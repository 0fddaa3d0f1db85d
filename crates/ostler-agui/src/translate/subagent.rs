//! Subagents: their parents, their start and their end.

use serde_json::Value;

use super::{Speaker, Translator};
use crate::event::{Body, SubagentOutcome};

/// A subagent, identified by the call that started it.
#[derive(Debug)]
pub(super) struct Subagent {
    /// The id of its current run; a subagent that sends messages again after its end gets a new one.
    run: String,
    times: u32,
    active: bool,
}

/// How a subagent ends.
pub(super) enum SubagentEnd {
    Done,
    /// It continues in a later run.
    Suspended,
    Failed {
        message: String,
        code: Option<String>,
    },
}

impl Translator {
    /// The run id in a speaker's events.
    pub(super) fn run_of(&self, speaker: &Speaker) -> Option<String> {
        let subagent = self.subagents.get(speaker.as_deref()?)?;
        Some(subagent.run.clone())
    }

    /// Starts a subagent at its first message.
    pub(super) fn begin_subagent(
        &mut self,
        call_id: &str,
        kind: Option<&str>,
        description: Option<&str>,
    ) {
        let times = match self.subagents.get(call_id) {
            Some(subagent) if subagent.active => return,
            Some(subagent) => subagent.times + 1,
            None => 1,
        };
        // A subagent runs only after its call is complete.
        self.close_call(call_id);
        let call = self.calls.get(call_id);
        let input = call.map(super::call::Call::input).unwrap_or_default();
        let field = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
        let name = kind.map(str::to_owned).or_else(|| field("subagent_type"));
        let parent = call.and_then(|call| self.run_of(&call.speaker));
        let parent_message_id = call.map(|call| call.message.clone());
        let run = if times == 1 {
            format!("agent-{call_id}")
        } else {
            format!("agent-{call_id}-{times}")
        };
        self.out.push(
            Body::SubagentStarted {
                subagent_run_id: run.clone(),
                name: name.unwrap_or_else(|| "subagent".to_owned()),
                description: description.map(str::to_owned).or_else(|| field("description")),
                parent_subagent_run_id: parent,
                parent_tool_call_id: Some(call_id.to_owned()),
                parent_message_id,
            }
            .into(),
        );
        // Its messages from now on belong to this run.
        self.lanes.remove(&Some(call_id.to_owned()));
        self.subagents.insert(call_id.to_owned(), Subagent { run, times, active: true });
    }

    pub(super) fn is_active(&self, call_id: &str) -> bool {
        self.subagents.get(call_id).is_some_and(|subagent| subagent.active)
    }

    pub(super) fn end_subagent(&mut self, call_id: &str, end: SubagentEnd) {
        if !self.is_active(call_id) {
            return;
        }
        let speaker = Some(call_id.to_owned());
        self.close_lane(&speaker);
        let Some(subagent) = self.subagents.get_mut(call_id) else { return };
        subagent.active = false;
        let subagent_run_id = subagent.run.clone();
        let finished = |outcome| Body::SubagentFinished {
            subagent_run_id: subagent_run_id.clone(),
            result: None,
            outcome: Some(outcome),
        };
        let body = match end {
            SubagentEnd::Done => finished(SubagentOutcome::Success {}),
            SubagentEnd::Suspended => finished(SubagentOutcome::Suspended { interrupt_ids: None }),
            SubagentEnd::Failed { message, code } => {
                Body::SubagentError { subagent_run_id: subagent_run_id.clone(), message, code }
            }
        };
        self.out.push(body.into());
    }

    /// The calls of the subagents that are still active.
    pub(super) fn active_subagents(&self) -> Vec<String> {
        let active = self.subagents.iter().filter(|(_, subagent)| subagent.active);
        active.map(|(call, _)| call.clone()).collect()
    }
}
