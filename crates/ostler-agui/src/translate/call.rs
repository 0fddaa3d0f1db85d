//! Tool calls: each starts once, is completed once and answered once.

use ostler_proto::api::ToolUseBlock;
use serde_json::Value;

use super::{Speaker, Translator};
use crate::event::{Body, Event};

/// The calls of a run, in order.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    /// The name that the model uses.
    pub(super) name: String,
    pub(super) speaker: Speaker,
    pub(super) message: String,
    hidden: bool,
    /// The arguments received so far.
    arguments: String,
    complete: bool,
    pub(super) answered: bool,
}

impl Calls {
    pub(super) fn get(&self, id: &str) -> Option<&Call> {
        self.0.iter().find(|call| call.id == id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Call> {
        self.0.iter_mut().find(|call| call.id == id)
    }

    pub(super) fn unanswered(&self) -> impl Iterator<Item = &Call> {
        self.0.iter().filter(|call| !call.answered)
    }

    fn incomplete(&self) -> Vec<String> {
        self.0.iter().filter(|call| !call.complete).map(|call| call.id.clone()).collect()
    }
}

impl Call {
    /// The arguments, if they are an object.
    pub(super) fn input(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_default()
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Whether it starts a subagent.
    pub(super) fn is_agent(&self) -> bool {
        matches!(self.name.as_str(), "Agent" | "Task")
    }
}

impl Translator {
    /// Starts a call, unless it has started already.
    pub(super) fn open_call(&mut self, speaker: &Speaker, block: &ToolUseBlock) {
        let id = block.id.to_string();
        if self.calls.get(&id).is_some() {
            return;
        }
        self.close_text(speaker);
        let message = self.parent_message(speaker);
        let hidden = self.settings.hidden_tools.contains(&block.name);
        self.calls.0.push(Call {
            id: id.clone(),
            name: block.name.clone(),
            speaker: speaker.clone(),
            message: message.clone(),
            hidden,
            arguments: String::new(),
            complete: false,
            answered: false,
        });
        if !hidden {
            let names = &self.settings.tool_names;
            let name = names.get(&block.name).unwrap_or(&block.name).clone();
            self.emit(
                speaker,
                Body::ToolCallStart {
                    tool_call_id: id.clone(),
                    tool_call_name: name,
                    parent_message_id: Some(message),
                },
            );
        }
        // Arguments that are complete at the start are sent as one delta.
        if block.input.as_object().is_some_and(|input| !input.is_empty()) {
            self.extend_call(&id, &block.input.to_string());
        }
    }

    pub(super) fn extend_call(&mut self, id: &str, delta: &str) {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.complete) else { return };
        if delta.is_empty() {
            return;
        }
        call.arguments.push_str(delta);
        if !call.hidden {
            let speaker = call.speaker.clone();
            let (tool_call_id, delta) = (id.to_owned(), delta.to_owned());
            self.emit(&speaker, Body::ToolCallArgs { tool_call_id, delta });
        }
    }

    /// Ends the arguments, even if they are incomplete.
    pub(super) fn close_call(&mut self, id: &str) {
        let Some(call) = self.calls.get(id).filter(|call| !call.complete) else { return };
        if call.arguments.is_empty() {
            self.extend_call(id, "{}");
        }
        let Some(call) = self.calls.get_mut(id) else { return };
        call.complete = true;
        if !call.hidden {
            let speaker = call.speaker.clone();
            self.emit(&speaker, Body::ToolCallEnd { tool_call_id: id.to_owned() });
        }
    }

    /// Translates a complete call. If deltas of its arguments arrived before, nothing is added: it is unknown which
    /// part they lack, and their own end follows.
    pub(super) fn whole_call(&mut self, speaker: &Speaker, block: &ToolUseBlock) {
        let id = block.id.to_string();
        match self.calls.get(&id) {
            None => {
                self.open_call(speaker, block);
                self.close_call(&id);
            }
            Some(call) if call.arguments.is_empty() && !call.complete => {
                if block.input.as_object().is_some_and(|input| !input.is_empty()) {
                    self.extend_call(&id, &block.input.to_string());
                }
            }
            Some(_) => {}
        }
    }

    pub(super) fn close_calls(&mut self) {
        for id in self.calls.incomplete() {
            self.close_call(&id);
        }
    }

    /// Whether the run only waits for the client: no message is streaming, and every unanswered call is `waiting`, has
    /// not `begun`, or started a subagent that waits for the client.
    pub fn only_waits(&self, waiting: &dyn Fn(&str) -> bool, begun: &dyn Fn(&str) -> bool) -> bool {
        if self.lanes.values().any(super::Lane::is_streaming) {
            return false;
        }
        let mut unanswered = self.calls.unanswered();
        unanswered.all(|call| {
            waiting(&call.id) || !begun(&call.id) || self.has_waiting_child(call, waiting)
        })
    }

    /// Whether a call started a subagent that waits, itself or through its own subagents.
    fn has_waiting_child(&self, call: &Call, waiting: &dyn Fn(&str) -> bool) -> bool {
        let mut children =
            self.calls.unanswered().filter(|child| child.speaker.as_deref() == Some(&call.id));
        children.any(|child| waiting(&child.id) || self.has_waiting_child(child, waiting))
    }

    /// Sends a call that the server makes instead of the model, so that the client runs a tool.
    pub fn call_client(&mut self, id: &str, name: &str, arguments: &Value) -> Vec<Event> {
        self.step(|it| {
            let speaker = None;
            it.close_text(&speaker);
            it.calls.0.push(Call {
                id: id.to_owned(),
                name: name.to_owned(),
                speaker: None,
                message: id.to_owned(),
                hidden: false,
                arguments: String::new(),
                complete: false,
                answered: false,
            });
            let start = Body::ToolCallStart {
                tool_call_id: id.to_owned(),
                tool_call_name: name.to_owned(),
                parent_message_id: None,
            };
            it.emit(&speaker, start);
            it.extend_call(id, &arguments.to_string());
            it.close_call(id);
        })
    }

    /// Whether this run has sent the call.
    pub fn knows(&self, id: &str) -> bool {
        self.calls.get(id).is_some()
    }

    /// The subagent that made a call, by the id in its events.
    pub fn owner(&self, id: &str) -> Option<String> {
        self.run_of(&self.calls.get(id)?.speaker)
    }

    /// Ids of unanswered calls, in order.
    pub fn unanswered(&self) -> Vec<String> {
        self.calls.unanswered().filter(|call| !call.hidden).map(|call| call.id.clone()).collect()
    }
}
