//! The tool calls of one response: which may start, which are done, and their results in order.

use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ContentBlock, ToolResultBlock, ToolUseBlock};

/// What the model reads about a call that was stopped.
pub const INTERRUPTED_CALL: &str = "The call was stopped: the user interrupted the turn.";

/// What the model reads about a call that was stopped because the turn failed.
pub(super) const ABANDONED_CALL: &str = "The call was stopped: the turn ended before it was done.";

/// The calls of one response, in the order the model made them.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    id: ToolUseId,
    /// It may run beside others that may.
    parallel: bool,
    state: CallState,
}

#[derive(Debug)]
enum CallState {
    Waiting(ToolUseBlock),
    Running,
    Done(ToolResultBlock),
}

impl Calls {
    pub(super) fn push(&mut self, call: ToolUseBlock, parallel: bool) {
        self.0.push(Call { id: call.id.clone(), parallel, state: CallState::Waiting(call) });
    }

    /// Notes a result. One for a call that is not known, or a second one, changes nothing.
    pub(super) fn done(&mut self, result: ToolResultBlock) {
        let call = self.0.iter_mut().find(|call| call.id == result.tool_use_id);
        if let Some(call) = call.filter(|call| !matches!(call.state, CallState::Done(_))) {
            call.state = CallState::Done(result);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn all_done(&self) -> bool {
        self.0.iter().all(|call| matches!(call.state, CallState::Done(_)))
    }

    /// Starts what may start: calls that may run side by side together, every other one alone.
    pub(super) fn start(&mut self) -> Vec<ToolUseBlock> {
        let is_running = |call: &&Call| matches!(call.state, CallState::Running);
        let mut running = self.0.iter().filter(is_running).count();
        let mut exclusive = self.0.iter().filter(is_running).any(|call| !call.parallel);
        let mut started = Vec::new();
        for call in &mut self.0 {
            let CallState::Waiting(block) = &call.state else { continue };
            if exclusive || (!call.parallel && running > 0) {
                // Later calls wait too, so that effects happen in the order the model asked for.
                break;
            }
            started.push(block.clone());
            call.state = CallState::Running;
            running += 1;
            exclusive |= !call.parallel;
        }
        started
    }

    /// Answers every call that has no result yet with the words why it will have none. Returns these answers.
    pub(super) fn stop(&mut self, why: &str) -> Vec<ToolResultBlock> {
        let mut stopped = Vec::new();
        for call in self.0.iter_mut().filter(|call| !matches!(call.state, CallState::Done(_))) {
            let result = ToolResultBlock {
                tool_use_id: call.id.clone(),
                content: Some(Content::from(why)),
                is_error: Some(true),
                ..ToolResultBlock::default()
            };
            stopped.push(result.clone());
            call.state = CallState::Done(result);
        }
        stopped
    }

    /// The results in the order of the calls, all of which are done.
    pub(super) fn take_results(&mut self) -> Vec<ContentBlock> {
        let results = std::mem::take(&mut self.0).into_iter().filter_map(|call| match call.state {
            CallState::Done(result) => Some(ContentBlock::ToolResult(result)),
            CallState::Waiting(_) | CallState::Running => None,
        });
        results.collect()
    }
}
