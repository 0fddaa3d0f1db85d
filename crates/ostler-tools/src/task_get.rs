//! `TaskGet`: shows one entry of the session's task list.

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{TaskDetails, TaskGetOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::task_entries::TaskEntries;

pub(crate) struct TaskGet(pub(crate) TaskEntries);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Args {
    /// Its number.
    task_id: String,
}

impl Tool for TaskGet {
    const NAME: &'static str = "TaskGet";
    const DESCRIPTION: &'static str = "Shows one task of the list with its description.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let list = self.0.lock();
        let Some(entry) = list.get(&args.task_id) else {
            let text = format!("there is no task {}", args.task_id);
            return Ok(ToolOutput::new(text, TaskGetOutput::default()));
        };
        let (blocks, blocked_by) = (list.blocks(&entry.id), list.waits_for(entry));
        let mut text = format!("Task {} ({}): {}", entry.id, entry.status, entry.subject);
        for (relation, others) in [("waits for", &blocked_by), ("is awaited by", &blocks)] {
            if !others.is_empty() {
                text.push_str(&format!("\n{relation} {}", others.join(", ")));
            }
        }
        text.push_str(&format!("\n{}", entry.description));
        let task = build!(TaskDetails {
            id: entry.id.clone(),
            subject: entry.subject.clone(),
            description: entry.description.clone(),
            status: entry.status.clone(),
            blocks,
            blocked_by,
        });
        Ok(ToolOutput::new(text, build!(TaskGetOutput { task: Some(task) })))
    }
}
