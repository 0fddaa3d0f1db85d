//! The tool calls of one response: which may start, which are done, and their results in order.

use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ContentBlock, ToolResultBlock, ToolUseBlock};
use ostler_proto::build;

/// What the model reads about a call that was stopped because the turn failed.
pub(super) const ABANDONED_CALL: &str = "The call was stopped: the turn ended before it was done.";

/// The most calls that run in parallel. A model may ask for hundreds of files or pages in one response; each call holds
/// its result in memory, and some hold a connection.
pub const MAX_PARALLEL_CALLS: usize = 64;

/// The calls of one response, in the order the model made them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// Every call before this one is done. A response may have thousands of calls, so no event goes through all of
    /// them.
    first_open: usize,
    /// The first call that has not started. Calls start in their order.
    next: usize,
    n_running: usize,
}

#[derive(Debug)]
struct Call {
    id: ToolUseId,
    /// It may run in parallel with others that may.
    parallel: bool,
    state: CallState,
}

#[derive(Debug)]
enum CallState {
    Waiting(ToolUseBlock),
    Running,
    Done(ToolResultBlock),
}

impl Call {
    fn is_done(&self) -> bool {
        matches!(self.state, CallState::Done(_))
    }
}

impl Calls {
    pub(super) fn push(&mut self, call: ToolUseBlock, parallel: bool) {
        self.calls.push(Call { id: call.id.clone(), parallel, state: CallState::Waiting(call) });
    }

    /// Notes a result. A result for an unknown call, or a second one, is ignored. Of several calls with the same id the
    /// first without a result gets it.
    pub(super) fn done(&mut self, result: ToolResultBlock) {
        let open = self.calls[self.first_open..].iter_mut();
        let is_meant = |call: &&mut Call| call.id == result.tool_use_id && !call.is_done();
        if let Some(call) = open.into_iter().find(is_meant) {
            self.n_running -= usize::from(matches!(call.state, CallState::Running));
            call.state = CallState::Done(result);
        }
        self.skip_done();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn all_done(&self) -> bool {
        self.first_open == self.calls.len()
    }

    /// Starts the calls that may start: parallel ones together, every other one alone.
    pub(super) fn start(&mut self) -> Vec<ToolUseBlock> {
        let running = &self.calls[self.first_open..self.next.max(self.first_open)];
        let is_exclusive = |call: &Call| !call.parallel && !call.is_done();
        let mut exclusive = running.iter().any(is_exclusive);
        let mut started = Vec::new();
        while let Some(call) = self.calls.get_mut(self.next) {
            if let CallState::Waiting(block) = &mut call.state {
                let alone = exclusive || (!call.parallel && self.n_running > 0);
                if alone || self.n_running >= MAX_PARALLEL_CALLS {
                    // Later calls wait too, so that effects happen in the order the model asked for.
                    break;
                }
                started.push(std::mem::take(block));
                call.state = CallState::Running;
                self.n_running += 1;
                exclusive |= !call.parallel;
            }
            self.next += 1;
        }
        started
    }

    /// Answers every call without a result with the reason why it has none. Returns these answers.
    pub(super) fn stop(&mut self, why: &str) -> Vec<ToolResultBlock> {
        let mut stopped = Vec::new();
        for call in self.calls.iter_mut().filter(|call| !call.is_done()) {
            let result = build!(ToolResultBlock {
                tool_use_id: call.id.clone(),
                content: Some(Content::from(why)),
                is_error: Some(true)
            });
            stopped.push(result.clone());
            call.state = CallState::Done(result);
        }
        self.n_running = 0;
        self.skip_done();
        stopped
    }

    /// The results in the order of the calls, all of which are done.
    pub(super) fn take_results(&mut self) -> Vec<ContentBlock> {
        let calls = std::mem::take(self).calls;
        let results = calls.into_iter().filter_map(|call| match call.state {
            CallState::Done(result) => Some(ContentBlock::ToolResult(result)),
            CallState::Waiting(_) | CallState::Running => None,
        });
        results.collect()
    }

    fn skip_done(&mut self) {
        while self.calls.get(self.first_open).is_some_and(Call::is_done) {
            self.first_open += 1;
        }
    }
}
