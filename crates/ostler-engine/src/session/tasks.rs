//! Notifies the host and the model of background tasks. Only the session's own task does this.

use ostler_proto::TaskId;
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::{Origin, TaskNotificationOrigin, User};

use super::Session;
use crate::outbox::Outbox;
use crate::tasks::{TaskChange, TaskChangeKind, TaskEnd, Tasks};

impl Session {
    /// Notifies the host of a change of a task.
    pub(super) async fn task_changed(&mut self, change: TaskChange) {
        match change.kind {
            TaskChangeKind::Ended => self.task_ended(&change.id).await,
            kind => {
                let outbox = &self.context.outbox;
                let tasks = &self.context.cx.tasks;
                let frames = tasks.change_frames(&change.id, kind, &outbox.session_id);
                send_all(outbox, frames).await;
            }
        }
        change.done();
    }

    /// The host is notified of the end of a task, and the model too, unless it knows.
    pub(super) async fn task_ended(&mut self, id: &TaskId) {
        let ended = notify_end(&self.context.outbox, &self.context.cx.tasks, id).await;
        let Some(TaskEnd { in_background: true, notice, .. }) = ended else { return };
        self.reported_state.again();
        let Some(text) = notice else { return self.tell_result().await };
        let origin = build!(TaskNotificationOrigin { producer: Some("session-task".to_owned()) });
        let origin = Some(Origin::TaskNotification(origin));
        self.queue.push(User { origin, ..self.synthetic(text) }, false);
    }
}

/// Ends all tasks, and notifies the host of each end.
pub(super) async fn end_all(outbox: &Outbox, tasks: &Tasks) {
    for id in tasks.end_all().await {
        notify_end(outbox, tasks, &id).await;
    }
}

/// Notifies the host of an end. There is no notice for the model if it knows already.
async fn notify_end(outbox: &Outbox, tasks: &Tasks, id: &TaskId) -> Option<TaskEnd> {
    let mut end = tasks.end_of(id, &outbox.session_id)?;
    send_all(outbox, std::mem::take(&mut end.frames)).await;
    if tasks.host_knows_end(id) {
        end.notice = None;
    }
    Some(end)
}

async fn send_all(outbox: &Outbox, frames: Vec<ToHost>) {
    for frame in frames {
        outbox.send(frame).await;
    }
}
