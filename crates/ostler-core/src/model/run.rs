//! Sessions and runs, as they are kept.

use std::path::PathBuf;

use ostler::PermissionMode;
use ostler::proto::api::ContentBlock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tally::Tally;
use crate::records::kept;

/// A conversation. Everything said in it is in the event log of the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: String,
    /// The user it belongs to.
    pub owner: String,
    /// What people call it.
    pub title: String,
    /// The name by which a client finds it again, such as the thread of AG-UI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Milliseconds since 1970.
    pub created: u64,
    /// Where in the log it begins. What comes before is of a session with the same key that was forgotten.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begins: u64,
    /// The engine's name for the conversation, once there was a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_session: Option<String>,
    pub setup: Setup,
    /// Where the conversation began in another one, until the engine has a name for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Forked>,
    /// What happened in it so far.
    #[serde(default)]
    pub tally: Tally,
    /// Where it stands among others: when something happened last, and its id.
    #[serde(default)]
    pub place: String,
    /// When it was made, and its id: the order in the list of a space.
    #[serde(default)]
    pub begun: String,
    /// What a search looks at: its title on the first line, then how prompts began.
    #[serde(default)]
    pub search: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Session {
    /// Whether the engine knows of something that was said.
    pub fn has_conversation(&self) -> bool {
        self.engine_session.is_some() || self.origin.is_some()
    }
}

/// A place in a conversation of the engine's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub conversation: String,
    pub message: String,
}

/// The session that another one was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    pub session: String,
    /// The run whose prompt was taken back, or that said the last word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// What the agent of a session is like.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Setup {
    /// The space it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Where it works.
    pub cwd: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Permission mode, as engines call it.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Instead of the engine's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// In addition to the engine's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_prompt: Option<String>,
    /// The built-in tools there are; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Rules for calls that need no question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Rules for calls that never run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The skill that was chosen, if this is a task's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Whether it can make schedules, and sees those of its user.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub schedules: bool,
}

/// One prompt and what comes of it.
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
    /// Whether the agent began it by itself, because something in the background had ended.
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
    /// At its end, with the engine that is there, if there is one.
    #[default]
    Here,
    /// At its end, with a new engine: what it works with has changed.
    Anew,
    /// Behind a message of the agent; what came after it is as if it had not been said.
    Behind { conversation: String, message: String },
    /// In a conversation of its own, of which nothing was said yet.
    Blank,
}

impl Begin {
    fn is_here(&self) -> bool {
        *self == Self::Here
    }
}

/// What was said beside the text of a prompt, such as pictures. Kept until its run is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Attached {
    /// The run.
    pub id: String,
    pub owner: String,
    /// All of the prompt.
    pub content: Vec<ContentBlock>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RunState {
    /// Waits for its turn.
    Queued,
    /// Works.
    Running,
    /// Waits for somebody's answer.
    Waiting,
    Completed,
    Failed,
    Cancelled,
    /// The server ended while it worked. It can be resumed.
    Interrupted,
}

impl RunState {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted)
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Outcome {
    /// The last words of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    pub cost_usd: f64,
    pub(crate) turns: u64,
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
