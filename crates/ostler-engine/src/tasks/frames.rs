//! The frames about background tasks.

use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::{
    BackgroundTask, BackgroundTasksChanged, TaskNotification, TaskOutcome, TaskPatch, TaskStarted,
    TaskStatus, TaskUpdated, TaskUsage,
};
use ostler_proto::{Num, SessionId};

use super::{Task, TaskCost, TaskResult};
use crate::ids::fresh_uuid;

/// All tasks that run now.
pub(super) fn changed(session: &SessionId, tasks: &[Task]) -> ToHost {
    let tasks = tasks.iter().filter(|task| task.is_in_background()).map(|task| {
        build!(BackgroundTask {
            task_id: task.id.clone(),
            task_type: task.kind.to_owned(),
            subagent_type: task.agent.as_ref().map(|agent| agent.kind.clone()),
            description: task.description.clone()
        })
    });
    ToHost::System(System::BackgroundTasksChanged(build!(BackgroundTasksChanged {
        tasks: tasks.collect(),
        session_id: session.clone(),
        uuid: fresh_uuid(),
    })))
}

/// A task begins.
pub(super) fn started(session: &SessionId, task: &Task) -> ToHost {
    ToHost::System(System::TaskStarted(build!(TaskStarted {
        task_id: task.id.clone(),
        tool_use_id: Some(task.call.clone()),
        description: task.description.clone(),
        task_type: Some(task.kind.to_owned()),
        subagent_type: task.agent.as_ref().map(|agent| agent.kind.clone()),
        prompt: task.agent.as_ref().map(|agent| agent.prompt.clone()),
        is_backgrounded: Some(task.is_in_background()),
        spawn_depth: task.agent.as_ref().map(|_| 1),
        session_id: session.clone(),
        uuid: fresh_uuid()
    })))
}

/// A task has another status.
pub(super) fn updated(session: &SessionId, task: &Task, ended: &TaskResult) -> ToHost {
    let status = match ended.outcome {
        TaskOutcome::Completed => TaskStatus::Completed,
        TaskOutcome::Stopped => TaskStatus::Killed,
        _ => TaskStatus::Failed,
    };
    let now = jiff::Timestamp::now().as_millisecond();
    let patch = build!(TaskPatch {
        status: Some(status),
        end_time: u64::try_from(now).ok().map(Num::from)
    });
    ToHost::System(System::TaskUpdated(build!(TaskUpdated {
        task_id: task.id.clone(),
        patch,
        session_id: session.clone(),
        uuid: fresh_uuid()
    })))
}

/// A task was moved to the background.
pub(super) fn put_behind(session: &SessionId, task: &Task) -> ToHost {
    ToHost::System(System::TaskUpdated(build!(TaskUpdated {
        task_id: task.id.clone(),
        patch: build!(TaskPatch { is_backgrounded: Some(true) }),
        session_id: session.clone(),
        uuid: fresh_uuid()
    })))
}

/// A task has ended.
pub(super) fn notification(session: &SessionId, task: &Task, ended: &TaskResult) -> ToHost {
    ToHost::System(System::TaskNotification(build!(TaskNotification {
        tool_use_id: Some(task.call.clone()),
        output_file: task.output_file.display().to_string(),
        summary: ended.summary.clone(),
        usage: ended.effort.map(usage),
        session_id: session.clone(),
        uuid: fresh_uuid(),
        ..TaskNotification::new(task.id.clone(), ended.outcome.clone())
    })))
}

/// The cost of a task in the wire's type.
pub(crate) fn usage(effort: TaskCost) -> TaskUsage {
    build!(TaskUsage {
        total_tokens: effort.tokens,
        tool_uses: effort.n_tool_calls,
        duration_ms: Num::from(effort.duration.as_millis() as u64),
    })
}
