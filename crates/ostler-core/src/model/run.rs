//! The records of sessions and runs.

use std::path::PathBuf;

use ostler::PermissionMode;
use ostler::proto::api::ContentBlock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::records::kept;

/// A conversation. Its events are in the log of the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: String,
    /// The user to whom it belongs.
    pub owner: String,
    /// Its title for people.
    pub title: String,
    /// The key by which a client finds it again, such as the thread of AG-UI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Milliseconds since 1970.
    pub created: u64,
    /// The number in the log where it begins. Earlier events belong to a deleted session with the same key.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begins: u64,
    /// The engine's id of the conversation, after the first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_session: Option<String>,
    pub setup: Setup,
    /// The place in another conversation where this one began, until the engine has an id for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Forked>,
    /// The totals of the session so far.
    #[serde(default)]
    pub tally: Tally,
    /// The sort key in lists: time of the last activity, and the id.
    #[serde(default)]
    pub place: String,
    /// The sort key in the list of a space: time of creation, and the id.
    #[serde(default)]
    pub begun: String,
    /// The text for searches: the title on the first line, then the beginnings of prompts.
    #[serde(default)]
    pub search: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Session {
    /// Whether the engine has a conversation for this session.
    pub fn has_conversation(&self) -> bool {
        self.engine_session.is_some() || self.origin.is_some()
    }
}

/// A place in a conversation of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub conversation: String,
    pub message: String,
}

/// The session from which another one was forked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    pub session: String,
    /// The run before whose prompt, or after whose answer, the copy ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// The configuration of a session's agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Setup {
    /// The space to which it belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// The working directory.
    pub cwd: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permission mode, by its name in the engine.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Replaces the engine's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Added to the engine's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_prompt: Option<String>,
    /// The available built-in tools; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Rules for calls that need no approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Rules for calls that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The skill of the task, if this is a task's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Whether it can create schedules, and sees those of its user.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub schedules: bool,
}

/// One prompt and its result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub id: String,
    pub session: String,
    pub owner: String,
    pub prompt: String,
    #[serde(default, skip_serializing_if = "Begin::is_here")]
    pub begin: Begin,
    pub state: RunState,
    /// Whether a hook or a schedule started it, so that others may have written its prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// Whether the agent started it by itself, because a background task had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Milliseconds since 1970.
    pub created: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// Where in the conversation a run begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Begin {
    /// At its end, with the current engine, if there is one.
    #[default]
    Here,
    /// At its end, with a new engine, because its configuration has changed.
    Anew,
    /// After a message of the agent; later messages are dropped.
    Behind { conversation: String, message: String },
    /// In a new, empty conversation.
    Blank,
}

impl Begin {
    fn is_here(&self) -> bool {
        *self == Self::Here
    }
}

/// The parts of a prompt other than text, such as images. Stored until its run ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Attached {
    /// The id of the run.
    pub id: String,
    pub owner: String,
    /// The whole prompt.
    pub content: Vec<ContentBlock>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RunState {
    /// Waits for a worker.
    Queued,
    /// In progress.
    Running,
    /// Waits for a user's answer.
    Waiting,
    Completed,
    Failed,
    Cancelled,
    /// The server stopped during the run. It can be resumed.
    Interrupted,
}

impl RunState {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted)
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcome {
    /// The last message of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    pub cost_usd: f64,
    pub(crate) turns: u64,
    /// What a sandbox enforced for its commands, without the lists of protected and hidden paths, which the message `result`
    /// has. Missing without a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<serde_json::Value>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// For programs: `run_timeout`, `stale`, `cancelled`, `max_turns`, `budget`, `api`, `engine`, ….
    pub code: String,
    /// For people.
    pub message: String,
}

impl Failure {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

kept!(Session, "session");

kept!(Attached, "attached");

kept!(Run, "run");
