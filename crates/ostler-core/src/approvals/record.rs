//! The record of an approval.

use std::path::PathBuf;

use ostler::engine::coverage::CallPlace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rule::{self, Offer, ToolRule};
use crate::confine::redact::Redactor;
use crate::records::kept;

/// A request for a decision about a tool call, or for answers to questions of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: String,
    pub kind: ApprovalKind,
    pub session: String,
    pub run: String,
    /// The user who may answer; administrators may, too.
    pub owner: String,
    pub tool_name: String,
    /// The id that the model gave the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// The subagent that requests the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The exact arguments, until the engine has received the answer. Clients get a redacted copy, and afterwards the
    /// record has that copy too.
    pub input: Value,
    /// Whether secrets were removed from this copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The digest of tool and arguments. An answer with a digest counts only if it matches.
    pub digest: String,
    /// The call in one line.
    pub summary: String,
    /// What the call does and which program makes it, in a sentence, if the engine says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Why approval is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Everything that was checked before the user was asked, in order; the last step decided. Empty if the engine does
    /// not report it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Step>,
    /// The kind of reason: `mode`, `rule`, `safetyCheck`, `hook`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_type: Option<String>,
    /// The path because of which approval is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<String>,
    /// The labels of `offers`, in their order. An answer picks one of them; without offers, the call can only be
    /// allowed once.
    pub rules: Vec<String>,
    /// What the scopes `session` and `always` can grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
    /// Where the call would run, and who started the run.
    #[serde(default)]
    pub origin: Origin,
    /// Milliseconds since 1970.
    pub asked: u64,
    /// When the request is denied automatically; never if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    pub state: ApprovalState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Whether the engine has received the answer.
    #[serde(default)]
    pub(crate) delivered: bool,
}

/// Where a call would run, and who started its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    /// The working directory. The scope `always` grants a rule for sessions that work there.
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
    /// Where the call would run. `everywhere` has what applies in all folders.
    pub(super) fn place(&self, everywhere: &CallPlace) -> CallPlace {
        let (cwd, directories) = (self.folder.clone(), self.directories.clone());
        CallPlace { cwd, directories, ..everywhere.clone() }
    }
}

/// One check on the way to a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What was checked: the mode, a rule and its source, a part of the command, a path, the hooks.
    #[serde(alias = "looked_at")]
    pub(crate) looked: String,
    /// The result of the check.
    pub result: String,
    /// Whether this check decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) decided: bool,
}

/// What the user is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalKind {
    /// Whether a tool may run.
    Permission,
    /// Answers to questions of the agent, which are in `input.questions`.
    Question,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalState {
    Pending,
    Allowed,
    Denied,
    /// The time limit passed without an answer; the call is denied.
    Expired,
    /// The run ended, so no answer is needed.
    Withdrawn,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The user, or `rule`, `expiry`, `server`.
    pub by: String,
    /// The interface: `rest`, `websocket`, `agui`, `cli`.
    pub via: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// The rule that was granted with the answer, or that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The rules that were granted with the answer; empty if there are none, or if a rule decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) granted: Vec<ToolRule>,
    /// How far the granted rule reaches.
    #[serde(default)]
    pub scope: Scope,
    /// Whether the rule also applies to runs that hooks and schedules start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// A message for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether the run ends.
    #[serde(default)]
    pub stop: bool,
    /// Arguments that replace the requested ones entirely.
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

    /// The content of the record. The exact arguments are needed until the engine has received the approval: a resumed
    /// run gets them from the record. After that, and with every other answer, only a redacted copy is stored.
    pub(super) fn to_keep(&self, redactor: &Redactor) -> Self {
        let needs_exact = match self.state {
            ApprovalState::Pending => true,
            ApprovalState::Allowed => !self.delivered,
            ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Withdrawn => false,
        };
        if needs_exact { self.clone() } else { self.shown(redactor) }
    }

    /// The redacted copy for people, clients and the log. The digest stays that of the exact arguments.
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
