//! Running calls that the host can move to the background.

use ostler_proto::ToolUseId;
use tokio_util::sync::CancellationToken;

use super::{TaskChangeKind, Tasks};

/// A call that can be moved to the background, until this value is dropped.
#[derive(Debug)]
pub struct Promotion {
    tasks: Tasks,
    call: ToolUseId,
    wanted: CancellationToken,
}

impl Promotion {
    /// Waits until the host moves the call to the background; for ever if it never does.
    pub async fn wanted(&self) {
        self.wanted.cancelled().await;
    }
}

impl Drop for Promotion {
    fn drop(&mut self) {
        self.tasks.0.lock().waited_for.remove(&self.call);
    }
}

impl Tasks {
    /// Lets the host move a call to the background from now on.
    pub fn promotion(&self, call: &ToolUseId) -> Promotion {
        let wanted = CancellationToken::new();
        if !self.0.is_off {
            self.0.lock().waited_for.insert(call.clone(), wanted.clone());
        }
        Promotion { tasks: self.clone(), call: call.clone(), wanted }
    }

    /// Moves one call or all calls to the background. Returns whether there was any.
    pub(crate) fn promote(&self, call: Option<&ToolUseId>) -> bool {
        let state = self.0.lock();
        let meant = state.waited_for.iter().filter(|(id, _)| call.is_none_or(|call| call == *id));
        meant.map(|(_, wanted)| wanted.cancel()).count() > 0
    }

    /// Moves a task that a call waits for to the background. Returns `false` if it has ended meanwhile.
    pub(crate) async fn put_behind(&self, id: &ostler_proto::TaskId) -> bool {
        {
            let mut state = self.0.lock();
            let Some(entry) = state.find_mut(id) else { return false };
            if !entry.is_running() {
                return false;
            }
            if let Some(agent) = &mut entry.task.agent {
                agent.in_background = true;
            }
            entry.known = false;
        }
        self.0.report(id, TaskChangeKind::Backgrounded).await;
        true
    }
}
