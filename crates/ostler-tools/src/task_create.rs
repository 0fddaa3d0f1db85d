//! `TaskCreate`: adds an entry to the session's task list, unless a hook objects.

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolEvent, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{CreatedTask, TaskCreateOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::task_entries::{Entry, MAX_ENTRIES, TaskEntries};

pub(crate) struct TaskCreate(pub(crate) TaskEntries);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Args {
    /// A short title, as an order.
    subject: String,
    /// What is to be done.
    description: String,
    /// The title while it is being done: "Running the tests".
    active_form: Option<String>,
    /// More data to store with it.
    #[serde(default)]
    metadata: Map<String, Value>,
}

impl Tool for TaskCreate {
    const NAME: &'static str = "TaskCreate";
    const DESCRIPTION: &'static str =
        "Puts one step of a larger task on the session's list, which the user sees.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let Args { subject, description, active_form, metadata } = args;
        let id = self.0.lock().next_id();
        let entry = Entry { id, subject, description, active_form, metadata, ..Entry::default() };
        // Before the entry is added: a refused entry was never on the list.
        let announced = cx.announce(ToolEvent::TaskCreated(entry.for_hooks())).await;
        announced.map_err(ToolError::Refused)?;
        let mut list = self.0.lock();
        if list.entries.len() >= MAX_ENTRIES {
            return Err(ToolError::Refused(format!(
                "the list may have {MAX_ENTRIES} entries at most; delete some with TaskUpdate"
            )));
        }
        list.entries.push(entry.clone());
        let text = format!("Task {} is on the list: {}", entry.id, entry.subject);
        let task = build!(CreatedTask {
            id: entry.id,
            subject: entry.subject,
            description: Some(entry.description),
        });
        Ok(ToolOutput::new(text, build!(TaskCreateOutput { task })))
    }
}
