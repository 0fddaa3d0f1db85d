//! How background tasks report changes to the session, and the frames with which the session notifies the host.
//!
//! Only the session's own task asks for these frames, one change after the other, so that the list in every
//! `background_tasks_changed` agrees with the frames before it. Hosts take the last list as the truth: a list that
//! names a task which has ended would keep them waiting for ever.

use std::fmt;

use futures::future::BoxFuture;
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::TaskOutcome;
use ostler_proto::{SessionId, TaskId};
use tokio::sync::oneshot;

use super::{Inner, Phase, Task, TaskResult, Tasks, frames, notice};

/// Passes changes of tasks on to the session.
pub(crate) trait TaskReporter: fmt::Debug + Send + Sync {
    /// Passes a change on. Returns `false` when the session is gone.
    fn report(&self, change: TaskChange) -> BoxFuture<'_, bool>;
}

/// A change of a task that the host is notified of.
#[derive(Debug)]
pub(crate) struct TaskChange {
    pub(crate) id: TaskId,
    pub(crate) kind: TaskChangeKind,
    /// Fires when the frames are sent.
    announced: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskChangeKind {
    Started,
    /// The conversation waited for it and does so no longer.
    Backgrounded,
    Ended,
}

/// The end of a background task, as the session acts on it.
pub(crate) struct TaskEnd {
    /// The frames that notify the host.
    pub(crate) frames: Vec<ToHost>,
    /// Whether the conversation continued without the task.
    pub(crate) in_background: bool,
    /// The notice for the model, unless it knows.
    pub(crate) notice: Option<String>,
}

impl Inner {
    /// Has the session notify the host of a change and waits for that, so that the caller's next frames come after it.
    pub(super) async fn report(&self, id: &TaskId, kind: TaskChangeKind) {
        let (announced, is_announced) = oneshot::channel();
        let change = TaskChange { id: id.clone(), kind, announced };
        let sent = match &self.reporter {
            Some(reporter) => reporter.report(change).await,
            None => false,
        };
        let is_announced = sent && is_announced.await.is_ok();
        if !is_announced && kind == TaskChangeKind::Ended {
            // The session is gone and cannot notify the host: callers must not wait for it.
            self.mark_announced(id);
        }
    }

    fn mark_announced(&self, id: &TaskId) {
        if let Some(entry) = self.lock().find_mut(id) {
            entry.phase.send_if_modified(|phase| match phase {
                Phase::Ended(ended) => {
                    *phase = Phase::Announced(ended.clone());
                    true
                }
                Phase::Running | Phase::Announced(_) => false,
            });
        }
    }

    /// The background tasks whose start was sent to the host and whose end was not, without `id`.
    fn announced(&self, without: Option<&TaskId>) -> Vec<Task> {
        let state = self.lock();
        let open = state.entries.iter().filter(|entry| entry.is_announced && entry.is_open());
        open.filter(|entry| Some(&entry.task.id) != without)
            .map(|entry| entry.task.clone())
            .collect()
    }
}

impl Tasks {
    /// The frames that notify the host of a task that begins or continues in the background.
    pub(crate) fn change_frames(
        &self,
        id: &TaskId,
        kind: TaskChangeKind,
        session: &SessionId,
    ) -> Vec<ToHost> {
        let task = {
            let mut state = self.0.lock();
            let Some(entry) = state.find_mut(id) else { return Vec::new() };
            entry.is_announced = true;
            entry.task.clone()
        };
        let is_listed = task.is_in_background();
        let list = is_listed.then(|| frames::changed(session, &self.0.announced(None)));
        let change = match kind {
            TaskChangeKind::Backgrounded => frames::put_behind(session, &task),
            _ => frames::started(session, &task),
        };
        list.into_iter().chain([change]).collect()
    }

    /// The end of a task. `None` when the host knows of it, or when the task runs. Once the frames are sent, call
    /// [`Tasks::host_knows_end`].
    pub(crate) fn end_of(&self, id: &TaskId, session: &SessionId) -> Option<TaskEnd> {
        let (task, ended) = {
            let state = self.0.lock();
            let entry = state.find(id)?;
            let Phase::Ended(ended) = entry.phase.borrow().clone() else { return None };
            (entry.task.clone(), ended)
        };
        let mut frames = vec![
            frames::updated(session, &task, &ended),
            frames::notification(session, &task, &ended),
        ];
        if task.is_in_background() {
            frames.push(frames::changed(session, &self.0.announced(Some(&task.id))));
        }
        let (in_background, notice) = (task.is_in_background(), notice(&task, &ended));
        Some(TaskEnd { frames, in_background, notice: Some(notice) })
    }

    /// Notes that the host was notified of an end. Returns whether the model knows of it too.
    pub(crate) fn host_knows_end(&self, id: &TaskId) -> bool {
        let is_known = self.0.lock().find(id).is_none_or(|entry| entry.known);
        self.0.mark_announced(id);
        is_known
    }

    /// Ends all tasks. Returns those whose end the host does not know yet.
    pub(crate) async fn end_all(&self) -> Vec<TaskId> {
        self.shutdown().await;
        let open: Vec<TaskId> = {
            let state = self.0.lock();
            let open = state.entries.iter().filter(|entry| !entry.phase.borrow().is_announced());
            open.map(|entry| entry.task.id.clone()).collect()
        };
        for id in &open {
            let ended = self.get(id).map(|(task, _)| task.description);
            self.0.mark_ended(id, TaskResult::new(TaskOutcome::Stopped, ended.unwrap_or_default()));
        }
        open
    }
}

impl TaskChange {
    /// Lets the task that reported the change continue. It may have been dropped meanwhile.
    pub(crate) fn done(self) {
        let _ = self.announced.send(());
    }
}
