//! `TaskUpdate`: changes an entry of the session's task list. A hook may object to completing it.

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolEvent, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{StatusChange, TaskStatus, TaskUpdateOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::task_entries::{List, TaskEntries};

pub(crate) struct TaskUpdate(pub(crate) TaskEntries);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Args {
    /// Its number.
    task_id: String,
    subject: Option<String>,
    description: Option<String>,
    active_form: Option<String>,
    status: Option<Status>,
    /// Tasks that wait for it from now on.
    #[serde(default)]
    add_blocks: Vec<String>,
    /// Tasks it waits for from now on.
    #[serde(default)]
    add_blocked_by: Vec<String>,
    owner: Option<String>,
    /// Is merged into the stored data; null removes a key.
    metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl From<Status> for TaskStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Completed => Self::Completed,
            Status::Deleted => Self::Deleted,
        }
    }
}

impl Tool for TaskUpdate {
    const NAME: &'static str = "TaskUpdate";
    const DESCRIPTION: &'static str = "Changes a task of the list: in_progress when you begin it, completed when it is \
        really done, deleted when it is not needed.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let Some(mut entry) = self.0.lock().get(&args.task_id).cloned() else {
            return Ok(not_found(args.task_id, "there is no such task"));
        };
        let others = args.add_blocks.iter().chain(&args.add_blocked_by);
        if let Some(odd) =
            others.into_iter().find(|id| is_invalid_dependency(&self.0.lock(), &args.task_id, id))
        {
            return Err(ToolError::Refused(format!(
                "task {} cannot wait for task {odd}",
                args.task_id
            )));
        }
        if matches!(args.status, Some(Status::Completed)) && entry.status != TaskStatus::Completed {
            entry.subject = args.subject.clone().unwrap_or(entry.subject);
            entry.description = args.description.clone().unwrap_or(entry.description);
            // Before the change: if it is refused, nothing is changed.
            let announced = cx.announce(ToolEvent::TaskCompleted(entry.for_hooks())).await;
            announced.map_err(ToolError::Refused)?;
        }
        Ok(change(&mut self.0.lock(), args))
    }
}

/// Whether a task cannot be waited for: it does not exist, or is the same one.
fn is_invalid_dependency(list: &List, task: &str, other: &str) -> bool {
    task == other || list.get(other).is_none()
}

fn not_found(task_id: String, error: &str) -> ToolOutput {
    let text = format!("{error}: {task_id}");
    let output = build!(TaskUpdateOutput { task_id, error: Some(error.to_owned()) });
    ToolOutput::new(text, output)
}

fn change(list: &mut List, args: Args) -> ToolOutput {
    let task_id = args.task_id;
    let Some(entry) = list.get_mut(&task_id) else {
        return not_found(task_id, "there is no such task any more");
    };
    let mut changed = Vec::new();
    let mut note = |name: &str| changed.push(name.to_owned());
    if let Some(subject) = args.subject {
        entry.subject = subject;
        note("subject");
    }
    if let Some(description) = args.description {
        entry.description = description;
        note("description");
    }
    if let Some(active_form) = args.active_form {
        entry.active_form = Some(active_form);
        note("activeForm");
    }
    if let Some(owner) = args.owner {
        entry.owner = Some(owner);
        note("owner");
    }
    for (name, value) in args.metadata.into_iter().flatten() {
        match value {
            Value::Null => _ = entry.metadata.remove(&name),
            value => _ = entry.metadata.insert(name, value),
        }
        note("metadata");
    }
    let status_change =
        args.status.map(TaskStatus::from).filter(|to| *to != entry.status).map(|to| {
            note("status");
            let from = std::mem::replace(&mut entry.status, to.clone());
            build!(StatusChange { from: from.to_string(), to: to.to_string() })
        });
    if !args.add_blocks.is_empty() {
        note("blocks");
    }
    if !args.add_blocked_by.is_empty() {
        note("blockedBy");
    }
    changed.dedup();
    args.add_blocks.iter().for_each(|other| list.wait(other, &task_id));
    args.add_blocked_by.iter().for_each(|other| list.wait(&task_id, other));
    if matches!(args.status, Some(Status::Deleted)) {
        list.remove(&task_id);
    }
    let text = match &status_change {
        Some(status) => format!("Task {task_id} is {} now.", status.to),
        None => format!("Task {task_id} is changed."),
    };
    let output =
        build!(TaskUpdateOutput { success: true, task_id, updated_fields: changed, status_change });
    ToolOutput::new(text, output)
}
