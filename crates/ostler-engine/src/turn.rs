//! [`Turn`]: from a prompt to its result, as a state machine without IO.
//!
//! The turn decides; `drive.rs` does. It asks for a model call, starts tools as soon as their input is
//! complete, sends the results back in the order of the calls, and ends when the model has no more calls.
//!
//! Invariant: whatever happens, when the turn is done every call in the conversation has exactly one result.

use std::collections::VecDeque;

use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ContentBlock, Role, ToolResultBlock, ToolUseBlock};

use crate::model::{ModelError, Said};

/// What the model reads about a call that was stopped.
pub const INTERRUPTED_CALL: &str = "The call was stopped: the user interrupted the turn.";
/// Marks an interruption while the model spoke, in the words hosts look for.
pub const INTERRUPTED: &str = "[Request interrupted by user]";
/// Marks an interruption while tools ran.
pub const INTERRUPTED_TOOLS: &str = "[Request interrupted by user for tool use]";

/// Everything that can happen to a turn.
#[derive(Debug)]
pub enum Input {
    /// The model finished a block that is not a call.
    Said(ContentBlock),
    /// The model finished a call. `parallel`: it may run beside others that may.
    Called { call: ToolUseBlock, parallel: bool },
    /// The response is complete.
    Replied,
    /// The response failed.
    Failed(ModelError),
    /// A tool has a result. `stop`: whoever gave it wants the turn to end.
    ToolDone { result: ToolResultBlock, stop: bool },
    /// Somebody wants it to stop.
    Interrupt,
}

/// Everything a turn can ask for.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "handed over once and taken apart at once")]
pub enum Output {
    /// Ask the model to go on with this conversation.
    AskModel(Vec<Said>),
    /// Run a tool. Its result is expected as [`Input::ToolDone`].
    RunTool(ToolUseBlock),
    /// The turn is over. Whatever still runs is to be stopped; its results are no longer wanted.
    Done(Ending),
}

/// How a turn ended.
#[derive(Debug)]
pub enum Ending {
    /// The model had no more calls.
    Completed,
    /// It was interrupted; `in_tools` tells whether tools were running or waiting.
    Interrupted { in_tools: bool },
    /// The limit on model calls was reached with calls still to answer.
    MaxTurns,
    /// The model failed.
    Failed(ModelError),
}

/// One turn of a conversation.
#[derive(Debug)]
pub struct Turn {
    /// The conversation without this turn.
    before: Vec<Said>,
    conversation: Vec<Said>,
    /// The response under way.
    answer: Vec<ContentBlock>,
    calls: Vec<Call>,
    replied: bool,
    rounds: u64,
    max_rounds: Option<u64>,
    outputs: VecDeque<Output>,
    done: bool,
}

#[derive(Debug)]
struct Call {
    id: ToolUseId,
    parallel: bool,
    state: CallState,
}

#[derive(Debug)]
enum CallState {
    Waiting(ToolUseBlock),
    Running,
    Done(ToolResultBlock),
}

impl Turn {
    /// A turn that answers `prompt` after `conversation`, with at most `max_rounds` model calls.
    pub fn new(
        conversation: Vec<Said>,
        prompt: Vec<ContentBlock>,
        max_rounds: Option<u64>,
    ) -> Self {
        let mut turn = Self {
            before: conversation.clone(),
            conversation,
            answer: Vec::new(),
            calls: Vec::new(),
            replied: false,
            rounds: 0,
            max_rounds,
            outputs: VecDeque::new(),
            done: false,
        };
        turn.user_says(prompt);
        turn.ask_model();
        turn
    }

    /// Takes what happened. Anything after the end is ignored.
    pub fn handle(&mut self, input: Input) {
        if self.done {
            return;
        }
        match input {
            Input::Said(block) => self.answer.push(block),
            Input::Called { call, parallel } => {
                self.answer.push(ContentBlock::ToolUse(call.clone()));
                self.calls.push(Call {
                    id: call.id.clone(),
                    parallel,
                    state: CallState::Waiting(call),
                });
            }
            Input::Replied => self.replied = true,
            Input::ToolDone { result, stop } => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == result.tool_use_id)
                {
                    call.state = CallState::Done(result);
                }
                if stop {
                    return self.interrupt();
                }
            }
            Input::Failed(error) => return self.fail(error),
            Input::Interrupt => return self.interrupt(),
        }
        self.go_on();
    }

    /// The next thing to do. `None` means: wait for an [`Input`].
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The conversation after the turn, fit to be continued.
    pub fn into_conversation(self) -> Vec<Said> {
        self.conversation
    }

    fn go_on(&mut self) {
        self.start_calls();
        let all_done = self.calls.iter().all(|call| matches!(call.state, CallState::Done(_)));
        if !self.replied || !all_done {
            return;
        }
        if self.calls.is_empty() {
            self.end(Ending::Completed, None);
        } else if self.max_rounds.is_some_and(|max| self.rounds >= max) {
            self.end(Ending::MaxTurns, None);
        } else {
            self.close_round();
            self.ask_model();
        }
    }

    /// Starts calls in order: those that may run side by side together, every other one alone.
    fn start_calls(&mut self) {
        let mut running =
            self.calls.iter().filter(|call| matches!(call.state, CallState::Running)).count();
        let mut exclusive = self
            .calls
            .iter()
            .any(|call| matches!(call.state, CallState::Running) && !call.parallel);
        for call in &mut self.calls {
            let CallState::Waiting(block) = &call.state else { continue };
            if exclusive || (!call.parallel && running > 0) {
                // Later calls wait too, so that effects happen in the order the model asked for.
                break;
            }
            self.outputs.push_back(Output::RunTool(block.clone()));
            call.state = CallState::Running;
            running += 1;
            exclusive |= !call.parallel;
        }
    }

    fn ask_model(&mut self) {
        self.rounds += 1;
        self.replied = false;
        self.outputs.push_back(Output::AskModel(self.conversation.clone()));
    }

    /// Moves the response and its results into the conversation. Calls without a result get one that says why.
    fn close_round(&mut self) {
        let answer = std::mem::take(&mut self.answer);
        if answer.is_empty() {
            return;
        }
        self.conversation.push(Said { role: Role::Assistant, content: answer });
        let results = std::mem::take(&mut self.calls).into_iter().map(|call| match call.state {
            CallState::Done(result) => ContentBlock::ToolResult(result),
            CallState::Waiting(_) | CallState::Running => {
                ContentBlock::ToolResult(ToolResultBlock {
                    tool_use_id: call.id,
                    content: Some(Content::from(INTERRUPTED_CALL)),
                    is_error: Some(true),
                    ..ToolResultBlock::default()
                })
            }
        });
        self.user_says(results.collect());
    }

    fn interrupt(&mut self) {
        let in_tools = !self.calls.is_empty();
        let marker = if in_tools { INTERRUPTED_TOOLS } else { INTERRUPTED };
        self.end(Ending::Interrupted { in_tools }, Some(marker));
    }

    fn fail(&mut self, error: ModelError) {
        // A prompt the API refuses would be refused with every later request too: it is forgotten.
        if error.is_fault_of_request() && self.rounds == 1 && self.answer.is_empty() {
            self.conversation = std::mem::take(&mut self.before);
        }
        self.end(Ending::Failed(error), None);
    }

    fn end(&mut self, ending: Ending, marker: Option<&str>) {
        self.close_round();
        if let Some(marker) = marker {
            self.user_says(vec![ContentBlock::text(marker)]);
        }
        self.outputs.clear();
        self.outputs.push_back(Output::Done(ending));
        self.done = true;
    }

    /// Neighbouring user messages are one, as the API sees them.
    fn user_says(&mut self, blocks: Vec<ContentBlock>) {
        match self.conversation.last_mut() {
            _ if blocks.is_empty() => {}
            Some(last) if last.role == Role::User => last.content.extend(blocks),
            _ => self.conversation.push(Said { role: Role::User, content: blocks }),
        }
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
