//! `TaskList`: shows the session's whole task list.

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{TaskListOutput, TaskSummary};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::task_entries::{Entry, List, TaskEntries};

pub(crate) struct TaskList(pub(crate) TaskEntries);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {}

impl Tool for TaskList {
    const NAME: &'static str = "TaskList";
    const DESCRIPTION: &'static str = "Shows all tasks of the list in short.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, _: Args) -> Result<ToolOutput, ToolError> {
        let list = self.0.lock();
        let tasks: Vec<_> = list.entries.iter().map(|entry| summary(&list, entry)).collect();
        let lines: Vec<String> = tasks.iter().map(line).collect();
        let text =
            if lines.is_empty() { "The list is empty.".to_owned() } else { lines.join("\n") };
        Ok(ToolOutput::new(text, build!(TaskListOutput { tasks })))
    }
}

fn summary(list: &List, entry: &Entry) -> TaskSummary {
    build!(TaskSummary {
        id: entry.id.clone(),
        subject: entry.subject.clone(),
        status: entry.status.clone(),
        owner: entry.owner.clone(),
        blocked_by: list.waits_for(entry),
    })
}

fn line(task: &TaskSummary) -> String {
    let owner = task.owner.as_ref().map(|owner| format!(", {owner}")).unwrap_or_default();
    let waits = match task.blocked_by.is_empty() {
        true => String::new(),
        false => format!(", waits for {}", task.blocked_by.join(", ")),
    };
    format!("{} ({}{owner}{waits}): {}", task.id, task.status, task.subject)
}
