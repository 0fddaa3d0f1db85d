//! `TaskOutput`: shows the output of a background task, and whether it still runs.

use std::time::Duration;

use ostler_engine::tasks::{Task, TaskResult, output};
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::message::system::TaskOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(crate) struct TaskOutput;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The task.
    task_id: String,
    /// Wait for its end: true if absent.
    #[serde(default = "yes")]
    block: bool,
    /// Milliseconds to wait: 30000 if absent, at most 600000.
    timeout: Option<u64>,
}

fn yes() -> bool {
    true
}

const DEFAULT_WAIT: Duration = Duration::from_secs(30);
const MAX_WAIT: Duration = Duration::from_secs(600);
const SHOWN: u64 = 30_000;

impl Tool for TaskOutput {
    const NAME: &'static str = "TaskOutput";
    const DESCRIPTION: &'static str = "Shows the state of a background task and the end of its output. You are notified when a task ends.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let id = args.task_id.as_str().into();
        if args.block {
            let wait = args.timeout.map_or(DEFAULT_WAIT, Duration::from_millis).min(MAX_WAIT);
            // Whether it ended in time is checked below.
            let _ = tokio::time::timeout(wait, cx.tasks.wait(&id)).await;
        }
        let (task, ended) = cx
            .tasks
            .get(&id)
            .ok_or_else(|| ToolError::Refused(format!("there is no task {}", args.task_id)))?;
        if ended.is_some() {
            cx.tasks.known(&id);
        }
        show(&task, ended.as_ref())
    }
}

fn show(task: &Task, ended: Option<&TaskResult>) -> Result<ToolOutput, ToolError> {
    let file = task.output_file.display();
    let end = output::end(&task.output_file, SHOWN)
        .map_err(|error| ToolError::Failed(format!("{file} cannot be read: {error}")))?;
    let (status, words) = match ended {
        None => ("running", "it still runs".to_owned()),
        // The last message of an agent is in its output already.
        Some(TaskResult { outcome, .. }) if task.agent.is_some() => {
            (status_name(outcome), status_name(outcome).into())
        }
        Some(TaskResult { outcome, summary, .. }) => (status_name(outcome), summary.clone()),
    };
    let cut = match end.is_cut() {
        true => format!("[the end of {} bytes; all of it is in {file}]\n", end.total),
        false => String::new(),
    };
    let text = format!("[task {}: {words}]\n{cut}{}", task.id, end.text);
    let structured = json!({"task": {
        "task_id": task.id,
        "task_type": task.kind,
        "status": status,
        "description": task.description,
        "output": end.text,
    }});
    Ok(ToolOutput::new(text.trim_end(), structured))
}

fn status_name(outcome: &TaskOutcome) -> &'static str {
    match outcome {
        TaskOutcome::Completed => "completed",
        TaskOutcome::Stopped => "stopped",
        _ => "failed",
    }
}
