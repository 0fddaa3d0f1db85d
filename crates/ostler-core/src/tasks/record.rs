//! The record of a task, and its form for clients.

use std::path::PathBuf;

use ostler_skills::metadata::{Isolation, Metadata, TaskType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::run::{Failure, Run, RunState};
use crate::records::kept;

/// A skill with a prompt, which can be executed any number of times.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub id: String,
    pub owner: String,
    pub name: String,
    /// The id of the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    pub task_type: TaskType,
    pub user_prompt: String,
    /// `default`, `ask`, `acceptEdits`, `plan`, or `bypass` where the operator allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    pub input_values: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The space to which it belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// The folder in which it works.
    pub project: PathBuf,
    /// Milliseconds since 1970.
    pub created: u64,
    /// The last execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

/// One execution of a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// The session, whose log has all events.
    pub session: String,
    pub run: String,
    pub metadata: Metadata,
}

kept!(Task, "task");

/// A task with its status.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    #[serde(flatten)]
    pub task: Task,
    /// `pending` until it is executed, then the state of the execution.
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Milliseconds from its start to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
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
