//! `TaskStop`: ends a background task.

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::TaskStopOutput;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct TaskStop;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The task.
    task_id: String,
}

impl Tool for TaskStop {
    const NAME: &'static str = "TaskStop";
    const DESCRIPTION: &'static str = "Ends a background task with all it started.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        // It only ends what this conversation was allowed to start.
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let task =
            cx.tasks.stop(&args.task_id.as_str().into()).await.map_err(ToolError::Refused)?;
        let message = format!("Stopped task {}: {}", task.id, task.description);
        let structured = build!(TaskStopOutput {
            message: message.clone(),
            task_id: task.id,
            task_type: task.kind.to_owned(),
            command: task.command
        });
        Ok(ToolOutput::new(message, structured))
    }
}
