//! A task, as it is kept and as it is shown.

use std::path::PathBuf;

use ostler_skills::metadata::{Isolation, Metadata, TaskType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::run::{Failure, Run, RunState};
use crate::records::kept;

/// Something to be done with a skill, as often as one likes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) name: String,
    /// The skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    pub(crate) task_type: TaskType,
    pub(crate) user_prompt: String,
    /// `default`, `ask`, `acceptEdits`, `plan`, or `bypass` where the operator allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission_mode: Option<String>,
    pub(crate) input_values: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) isolation: Option<Isolation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The space it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) space: Option<String>,
    /// Where it works.
    pub(crate) project: PathBuf,
    /// Milliseconds since 1970.
    pub(crate) created: u64,
    /// The last time it was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) execution: Option<Execution>,
}

/// One time that a task is done.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Execution {
    /// Its log has everything.
    pub(crate) session: String,
    pub(crate) run: String,
    pub(crate) metadata: Metadata,
}

kept!(Task, "task");

/// A task with how it stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskView {
    #[serde(flatten)]
    pub(crate) task: Task,
    /// `pending` until it is executed, then how that stands.
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<u64>,
    /// Milliseconds from its start to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Failure>,
}

impl TaskView {
    pub(crate) fn new(task: Task, run: Option<Run>) -> Self {
        let (started, ended) = run.as_ref().map_or((None, None), |run| (run.started, run.ended));
        let duration = started.zip(ended).map(|(started, ended)| ended.saturating_sub(started));
        let outcome = run.as_ref().and_then(|run| run.outcome.clone()).unwrap_or_default();
        let status = run.map_or("pending", |run| word(run.state));
        Self {
            task,
            status,
            started,
            ended,
            duration,
            result: outcome.result,
            error: outcome.error,
        }
    }
}

fn word(state: RunState) -> &'static str {
    match state {
        RunState::Queued => "queued",
        RunState::Running => "running",
        RunState::Waiting => "waiting",
        RunState::Completed => "completed",
        RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
        RunState::Interrupted => "interrupted",
    }
}
