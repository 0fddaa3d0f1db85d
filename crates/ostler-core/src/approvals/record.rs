//! A request for somebody's decision, as it is kept.

use std::path::PathBuf;

use ostler::engine::coverage::CallPlace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rule::{self, Offer, ToolRule};
use crate::confine::redact::Redactor;
use crate::records::kept;

/// Somebody is to decide: about a tool call, or on questions of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: String,
    pub kind: ApprovalKind,
    pub session: String,
    pub run: String,
    /// The user who may answer; so may administrators.
    pub owner: String,
    pub tool_name: String,
    /// The call, as the model names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The subagent that wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The exact arguments in the record until the engine has the answer; a copy without secrets for everybody who reads it,
    /// and in the record afterwards.
    pub input: Value,
    /// Whether this copy differs from the exact arguments because secrets were taken out of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Of tool and arguments. An answer that names it counts only for this.
    pub digest: String,
    /// The call in one line.
    pub summary: String,
    /// Why it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Everything that was looked at before somebody was asked, in order; the last one decided. Empty where the engine does
    /// not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Step>,
    /// The kind of reason: `mode`, `rule`, `safetyCheck`, `hook`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_type: Option<String>,
    /// The path because of which it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<String>,
    /// The labels of `offers`, in their order. An answer picks one of them; if there is none, the call is allowed once only.
    pub rules: Vec<String>,
    /// What "session" and "always" can grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
    /// Where the call would run, and who started the run.
    #[serde(default)]
    pub origin: Origin,
    /// Milliseconds since 1970.
    pub asked: u64,
    /// When it becomes a no; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    pub state: ApprovalState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Whether the engine has had the answer.
    #[serde(default)]
    pub(crate) delivered: bool,
}

/// Where a call would run, and who started its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    /// The working directory. "Always" grants a rule for sessions that work there.
    pub folder: PathBuf,
    /// The space of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Other working directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) directories: Vec<PathBuf>,
    /// Whether a hook or a schedule started the run, so that others may have written its prompt.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// Whether no granted rule may answer, because the task asks before every tool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) people_only: bool,
}

impl Origin {
    /// Where the call would run. `everywhere` says what holds in all folders.
    pub(super) fn place(&self, everywhere: &CallPlace) -> CallPlace {
        let (cwd, directories) = (self.folder.clone(), self.directories.clone());
        CallPlace { cwd, directories, ..everywhere.clone() }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What: the mode, a rule and where it stands, a part of the command, a path, the hooks.
    #[serde(alias = "looked_at")]
    pub(crate) looked: String,
    /// What came of it.
    pub result: String,
    /// Whether this decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) decided: bool,
}

/// What is to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalKind {
    /// Whether a tool may run.
    Permission,
    /// What the agent asks; `input.questions` has the questions.
    Question,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalState {
    Pending,
    Allowed,
    Denied,
    /// Nobody answered in time, which is a no.
    Expired,
    /// The run is over, so nobody needs to know any more.
    Withdrawn,
}

/// What somebody decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The user, or `rule`, `expiry`, `server`.
    pub by: String,
    /// How it came: `rest`, `websocket`, `agui`, `cli`.
    pub via: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// The rule that was granted with it, or that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What was granted with it; empty if nothing was, or if a rule decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) granted: Vec<ToolRule>,
    /// How far the rule reaches.
    #[serde(default)]
    pub scope: Scope,
    /// Whether the rule also answers for runs that hooks and schedules start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// For the model to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether the run is to end.
    #[serde(default)]
    pub stop: bool,
    /// The arguments to run with instead; the whole of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

/// How far an answer reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// This call.
    #[default]
    Once,
    /// This session.
    Session,
    /// All sessions of the user in the same folder.
    Always,
}

impl Approval {
    pub fn is_pending(&self) -> bool {
        self.state == ApprovalState::Pending
    }

    /// What the record has. The exact arguments are needed until the engine has the yes: a run that is resumed gets them from
    /// the record. After that, and with every other answer, nobody needs them.
    pub(super) fn to_keep(&self, redactor: &Redactor) -> Self {
        let needs_exact = match self.state {
            ApprovalState::Pending => true,
            ApprovalState::Allowed => !self.delivered,
            ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Withdrawn => false,
        };
        if needs_exact { self.clone() } else { self.shown(redactor) }
    }

    /// The copy that people, clients and the log read. The digest stays that of the exact arguments.
    pub(crate) fn shown(&self, redactor: &Redactor) -> Self {
        let mut shown = self.clone();
        redactor.value(&mut shown.input);
        for offer in &mut shown.offers {
            rule::redact(&mut offer.rules, redactor);
        }
        if let Some(answer) = &mut shown.answer {
            rule::redact(&mut answer.granted, redactor);
            answer.input.iter_mut().for_each(|input| redactor.value(input));
        }
        shown.redacted |= shown.input != self.input;
        shown
    }
}

kept!(Approval, "approval");
