//! What the session tells the host about background tasks.
//!
//! Only the session's own task calls this, one change after the other, so that the list in every
//! `background_tasks_changed` agrees with the frames before it. Hosts take the last list as the truth: a list that
//! names a task which has ended would keep them waiting for ever.

use ostler_proto::TaskId;
use ostler_proto::message::system::TaskOutcome;
use tokio::sync::oneshot;

use super::{Ended, Inner, Phase, Task, Tasks, frames, notice};
use crate::host::{Host, HostCall};

/// A change of a task that the host is to be told of.
#[derive(Debug)]
pub(crate) struct TaskChange {
    pub(crate) id: TaskId,
    pub(crate) kind: TaskChangeKind,
    /// Fires when the frames are sent.
    told: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskChangeKind {
    Started,
    /// The conversation waited for it and does so no longer.
    Backgrounded,
    Ended,
}

/// The end of a background task, as the session acts on it.
pub(crate) struct ToldEnd {
    /// Whether the conversation went on without the task.
    pub(crate) in_background: bool,
    /// What the model is to be told, unless it knows.
    pub(crate) notice: Option<String>,
}

impl Inner {
    /// Has the session tell of a change and waits until it has, so that what the caller sends next comes after it.
    pub(super) async fn report(&self, id: &TaskId, kind: TaskChangeKind) {
        let (told, is_told) = oneshot::channel();
        let change = TaskChange { id: id.clone(), kind, told };
        let sent = match &self.host {
            Some(host) => host.calls.send(HostCall::Task(change)).await.is_ok(),
            None => false,
        };
        let is_told = sent && is_told.await.is_ok();
        if !is_told && kind == TaskChangeKind::Ended {
            // No session is left to tell of it: nobody is to wait for that.
            self.mark_told(id);
        }
    }

    fn mark_told(&self, id: &TaskId) {
        if let Some(entry) = self.lock().find_mut(id) {
            entry.phase.send_if_modified(|phase| match phase {
                Phase::Ended(ended) => {
                    *phase = Phase::Told(ended.clone());
                    true
                }
                Phase::Running | Phase::Told(_) => false,
            });
        }
    }

    /// The background tasks whose beginning the host has been told and whose end it has not, without `id`.
    fn announced(&self, without: Option<&TaskId>) -> Vec<Task> {
        let state = self.lock();
        let open = state.entries.iter().filter(|entry| entry.is_announced && entry.is_open());
        open.filter(|entry| Some(&entry.task.id) != without)
            .map(|entry| entry.task.clone())
            .collect()
    }
}

impl Tasks {
    /// Tells the host that a task begins or goes on in the background. An end has a function of its own.
    pub(crate) async fn tell_change(&self, id: &TaskId, kind: TaskChangeKind) {
        let task = {
            let mut state = self.0.lock();
            let Some(entry) = state.find_mut(id) else { return };
            entry.is_announced = true;
            entry.task.clone()
        };
        let Some(host) = &self.0.host else { return };
        if task.is_in_background() {
            host.send(frames::changed(host, &self.0.announced(None))).await;
        }
        host.send(match kind {
            TaskChangeKind::Backgrounded => frames::put_behind(host, &task),
            _ => frames::started(host, &task),
        })
        .await;
    }

    /// Tells the host that a task has ended. `None` when the host knows, or when the task runs.
    pub(crate) async fn tell_end(&self, id: &TaskId) -> Option<ToldEnd> {
        let (task, ended) = {
            let state = self.0.lock();
            let entry = state.find(id)?;
            let Phase::Ended(ended) = entry.phase.borrow().clone() else { return None };
            (entry.task.clone(), ended)
        };
        if let Some(host) = &self.0.host {
            self.send_end(host, &task, &ended).await;
        }
        let is_known = self.0.lock().find(id).is_none_or(|entry| entry.known);
        self.0.mark_told(id);
        let notice = (!is_known).then(|| notice(&task, &ended));
        Some(ToldEnd { in_background: task.is_in_background(), notice })
    }

    async fn send_end(&self, host: &Host, task: &Task, ended: &Ended) {
        host.send(frames::updated(host, task, ended)).await;
        host.send(frames::notification(host, task, ended)).await;
        if task.is_in_background() {
            host.send(frames::changed(host, &self.0.announced(Some(&task.id)))).await;
        }
    }

    /// Ends everything, and tells the host of each end.
    pub(crate) async fn end_and_tell(&self) {
        self.shutdown().await;
        let open: Vec<TaskId> = {
            let state = self.0.lock();
            let open = state.entries.iter().filter(|entry| !entry.phase.borrow().is_told());
            open.map(|entry| entry.task.id.clone()).collect()
        };
        for id in &open {
            let ended = self.get(id).map(|(task, _)| task.description);
            self.0.mark_ended(id, Ended::new(TaskOutcome::Stopped, ended.unwrap_or_default()));
            self.tell_end(id).await;
        }
    }
}

impl TaskChange {
    /// Lets whoever reported the change continue. It may have been dropped meanwhile.
    pub(crate) fn done(self) {
        let _ = self.told.send(());
    }
}
