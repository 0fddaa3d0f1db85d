//! The frames about background tasks.

use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::{
    BackgroundTask, BackgroundTasksChanged, TaskNotification, TaskOutcome, TaskPatch, TaskStarted,
    TaskStatus, TaskUpdated, TaskUsage,
};
use ostler_proto::{Extra, Num, SessionId};

use super::{Task, TaskCost, TaskResult};
use crate::ids::fresh_uuid;

/// All tasks that run now.
pub(super) fn changed(session: &SessionId, tasks: &[Task]) -> ToHost {
    let tasks = tasks.iter().filter(|task| task.is_in_background()).map(|task| BackgroundTask {
        task_id: task.id.clone(),
        task_type: task.kind.to_owned(),
        subagent_type: task.agent.as_ref().map(|agent| agent.kind.clone()),
        description: task.description.clone(),
        ..BackgroundTask::default()
    });
    ToHost::System(System::BackgroundTasksChanged(BackgroundTasksChanged {
        tasks: tasks.collect(),
        session_id: session.clone(),
        uuid: fresh_uuid(),
        extra: Extra::default(),
    }))
}

/// A task begins.
pub(super) fn started(session: &SessionId, task: &Task) -> ToHost {
    ToHost::System(System::TaskStarted(TaskStarted {
        task_id: task.id.clone(),
        tool_use_id: Some(task.call.clone()),
        description: task.description.clone(),
        task_type: Some(task.kind.to_owned()),
        subagent_type: task.agent.as_ref().map(|agent| agent.kind.clone()),
        prompt: task.agent.as_ref().map(|agent| agent.prompt.clone()),
        is_backgrounded: Some(task.is_in_background()),
        spawn_depth: task.agent.as_ref().map(|_| 1),
        session_id: session.clone(),
        uuid: fresh_uuid(),
        ..TaskStarted::default()
    }))
}

/// A task has another status.
pub(super) fn updated(session: &SessionId, task: &Task, ended: &TaskResult) -> ToHost {
    let status = match ended.outcome {
        TaskOutcome::Completed => TaskStatus::Completed,
        TaskOutcome::Stopped => TaskStatus::Killed,
        _ => TaskStatus::Failed,
    };
    let now = jiff::Timestamp::now().as_millisecond();
    let patch = TaskPatch {
        status: Some(status),
        end_time: u64::try_from(now).ok().map(Num::from),
        ..TaskPatch::default()
    };
    ToHost::System(System::TaskUpdated(TaskUpdated {
        task_id: task.id.clone(),
        patch,
        session_id: session.clone(),
        uuid: fresh_uuid(),
        ..TaskUpdated::default()
    }))
}

/// A task was moved to the background.
pub(super) fn put_behind(session: &SessionId, task: &Task) -> ToHost {
    ToHost::System(System::TaskUpdated(TaskUpdated {
        task_id: task.id.clone(),
        patch: TaskPatch { is_backgrounded: Some(true), ..TaskPatch::default() },
        session_id: session.clone(),
        uuid: fresh_uuid(),
        ..TaskUpdated::default()
    }))
}

/// A task has ended.
pub(super) fn notification(session: &SessionId, task: &Task, ended: &TaskResult) -> ToHost {
    ToHost::System(System::TaskNotification(TaskNotification {
        task_id: task.id.clone(),
        run_id: None,
        tool_use_id: Some(task.call.clone()),
        status: ended.outcome.clone(),
        reason: None,
        output_file: task.output_file.display().to_string(),
        summary: ended.summary.clone(),
        usage: ended.effort.map(usage),
        resource_links: None,
        skip_transcript: None,
        ambient: None,
        session_id: session.clone(),
        uuid: fresh_uuid(),
        extra: Extra::default(),
    }))
}

/// The cost of a task in the wire's type.
pub(crate) fn usage(effort: TaskCost) -> TaskUsage {
    TaskUsage {
        total_tokens: effort.tokens,
        tool_uses: effort.n_tool_calls,
        duration_ms: Num::from(effort.duration.as_millis() as u64),
        extra: Extra::default(),
    }
}
