//! Subagents that have finished: they can be resumed where they stopped.

use std::collections::VecDeque;
use std::sync::Arc;

use ostler_proto::AgentId;
use parking_lot::Mutex;

use crate::model::ChatMessage;
use crate::store::SharedTranscript;

/// How many are remembered; a conversation can be large.
const MOST_REMEMBERED: usize = 16;

/// The subagents of a session that have finished, the newest last. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct FinishedSubagents(Arc<Mutex<VecDeque<FinishedSubagent>>>);

/// What is needed to resume a subagent.
#[derive(Clone, Debug)]
pub(crate) struct FinishedSubagent {
    pub(crate) id: AgentId,
    pub(crate) kind: String,
    pub(crate) conversation: Vec<ChatMessage>,
    pub(crate) transcript: Option<SharedTranscript>,
}

impl FinishedSubagents {
    pub(crate) fn remember(&self, finished: FinishedSubagent) {
        let mut all = self.0.lock();
        all.push_back(finished);
        while all.len() > MOST_REMEMBERED {
            all.pop_front();
        }
    }

    /// Removes and returns one, so that it is resumed only once.
    pub(crate) fn take(&self, id: &str) -> Option<FinishedSubagent> {
        let mut all = self.0.lock();
        let at = all.iter().position(|finished| finished.id.as_str() == id)?;
        all.remove(at)
    }
}
