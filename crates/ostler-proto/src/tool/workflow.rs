//! `Workflow` and `Monitor`: scripts and watches that run next to the conversation. Newer peers only.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{Extra, TaskId};

/// A script that directs agents.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkflowInput {
    /// The script.
    pub script: Option<String>,
    /// A script known by name.
    pub name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// A title.
    pub title: Option<String>,
    /// Its arguments.
    pub args: Option<Value>,
    /// The file that holds it.
    pub script_path: Option<String>,
    /// An earlier run to resume.
    pub resume_from_run_id: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A script was started.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(task_id, status))]
#[non_exhaustive]
pub struct WorkflowOutput {
    /// Where.
    pub status: WorkflowStatus,
    /// The task.
    pub task_id: TaskId,
    /// What it is: `local_workflow` or `remote_agent`.
    pub task_type: Option<String>,
    /// The script's name.
    pub workflow_name: Option<String>,
    /// The run.
    pub run_id: Option<String>,
    /// What it does.
    pub summary: Option<String>,
    /// The directory with its transcripts.
    pub transcript_dir: Option<String>,
    /// The file that holds the script.
    pub script_path: Option<String>,
    /// The URL to watch it.
    pub session_url: Option<String>,
    /// A warning.
    pub warning: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where a script was started.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum WorkflowStatus {
    /// Here, in the background.
    AsyncLaunched,
    /// On another machine.
    RemoteLaunched,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Something to watch.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct MonitorInput {
    /// What and why.
    pub description: String,
    /// The timeout in milliseconds; the peer has a default.
    pub timeout_ms: Option<u64>,
    /// A command whose lines are the events.
    pub command: Option<String>,
    /// A WebSocket whose messages are the events.
    pub ws: Option<MonitorSocket>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A WebSocket to listen to.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct MonitorSocket {
    /// Its address.
    pub url: String,
    /// The protocols to offer.
    pub protocols: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Something is being watched.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct MonitorOutput {
    /// The task.
    pub task_id: TaskId,
    /// The timeout in milliseconds.
    pub timeout_ms: u64,
    /// Whether it outlives the turn.
    pub persistent: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}
