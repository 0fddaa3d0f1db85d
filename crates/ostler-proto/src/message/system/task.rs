//! Background tasks: commands and agents that run next to the conversation.

use ostler_proto_derive::Wire;

use crate::{Extra, Num, SessionId, TaskId, ToolUseId, Uuid};

/// `task_started`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskStarted {
    /// The task.
    pub task_id: TaskId,
    /// This run of it.
    pub run_id: Option<String>,
    /// The call that started it.
    pub tool_use_id: Option<ToolUseId>,
    /// In a few words.
    pub description: String,
    /// `local_agent`, `local_bash`, `local_workflow`, ….
    pub task_type: Option<String>,
    /// The agent's type.
    pub subagent_type: Option<String>,
    /// `false` while the conversation waits for it.
    pub is_backgrounded: Option<bool>,
    /// How deep agents are nested.
    pub spawn_depth: Option<u64>,
    /// The task that started it.
    pub parent_task_id: Option<TaskId>,
    /// The agent's prompt.
    pub prompt: Option<String>,
    /// The workflow it runs.
    pub workflow_name: Option<String>,
    /// Whether it stays out of the transcript.
    pub skip_transcript: Option<bool>,
    /// Whether it is housekeeping that no one waits for.
    pub ambient: Option<bool>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `task_progress`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskProgress {
    /// The task.
    pub task_id: TaskId,
    /// This run of it.
    pub run_id: Option<String>,
    /// The call that started it.
    pub tool_use_id: Option<ToolUseId>,
    /// In a few words.
    pub description: String,
    /// The agent's type.
    pub subagent_type: Option<String>,
    /// What it used so far.
    pub usage: TaskUsage,
    /// The tool it used last.
    pub last_tool_name: Option<String>,
    /// What it did so far.
    pub summary: Option<String>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a task used.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskUsage {
    /// Tokens.
    pub total_tokens: u64,
    /// Tool calls.
    pub tool_uses: u64,
    /// Wall time.
    pub duration_ms: Num,
    /// Unknown fields.
    pub extra: Extra,
}

/// `task_updated`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskUpdated {
    /// The task.
    pub task_id: TaskId,
    /// This run of it.
    pub run_id: Option<String>,
    /// What changed.
    pub patch: TaskPatch,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// What changed about a task.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskPatch {
    /// Its status.
    pub status: Option<TaskStatus>,
    /// Its description.
    pub description: Option<String>,
    /// When it ended (Unix milliseconds).
    pub end_time: Option<Num>,
    /// How long it was paused.
    pub total_paused_ms: Option<Num>,
    /// How it failed.
    pub error: Option<String>,
    /// Whether it went to the background.
    pub is_backgrounded: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Status of a task.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum TaskStatus {
    /// It waits.
    Pending,
    /// It runs.
    Running,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It was killed.
    Killed,
    /// It is paused.
    Paused,
    /// A status this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// `task_notification`: a background task ended. A separate turn follows, without a `user` frame.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(task_id, status))]
#[non_exhaustive]
pub struct TaskNotification {
    /// The task.
    pub task_id: TaskId,
    /// This run of it.
    pub run_id: Option<String>,
    /// The call that started it.
    pub tool_use_id: Option<ToolUseId>,
    /// How it ended.
    pub status: TaskOutcome,
    /// The reason, if it is outside the task.
    pub reason: Option<String>,
    /// Where its output is; empty for a foreground command.
    pub output_file: String,
    /// What happened, in a sentence.
    pub summary: String,
    /// What it used.
    pub usage: Option<TaskUsage>,
    /// Resources it produced.
    pub resource_links: Option<Vec<ResourceLink>>,
    /// Whether it stays out of the transcript.
    pub skip_transcript: Option<bool>,
    /// Whether it was housekeeping.
    pub ambient: Option<bool>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// How a background task ended.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum TaskOutcome {
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Stopped,
    /// An outcome this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A resource of an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceLink {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Hints of the server.
    pub annotations: Option<serde_json::Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `background_tasks_changed`: the full set, replacing the one before.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct BackgroundTasksChanged {
    /// All tasks that run now.
    pub tasks: Vec<BackgroundTask>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// A running background task.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct BackgroundTask {
    /// The task.
    pub task_id: TaskId,
    /// This run of it.
    pub run_id: Option<String>,
    /// `local_agent`, `local_bash`, ….
    pub task_type: String,
    /// The agent's type.
    pub subagent_type: Option<String>,
    /// In a few words.
    pub description: String,
    /// The task that started it.
    pub parent_task_id: Option<TaskId>,
    /// Whether it is housekeeping.
    pub ambient: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}
