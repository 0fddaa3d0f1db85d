//! The audit log: who decided what, stored for ever.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::{Approval, ApprovalState, Scope};
use crate::model::run::{Run, Session};
use crate::model::space::Space;
use crate::records::kept;

/// One entry of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Audited {
    /// Sorts by time.
    pub id: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// The user whose session it concerns.
    pub owner: String,
    /// The user who decided, or `server`.
    pub by: String,
    /// The interface: `rest`, `websocket`, `agui`, `cli`, or `server`.
    pub via: String,
    /// What was decided: `allowed`, `denied`, `expired`, `withdrawn`, `revoked`; `widened` for a space whose agents may use a
    /// whole tool, `memory` for a space whose memory was changed, `mcp_server` for an MCP server that was added, replaced or removed, `sandboxed` for a run whose commands were in a sandbox.
    pub(crate) decision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The call in one line, or the rule.
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    pub scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What a sandbox enforced for the commands of the run: program, layers, folders that they could write, network, limits, and
    /// what was requested and is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<Value>,
}

impl Audited {
    /// The entry for a decided approval.
    pub(crate) fn of(approval: &Approval, at: u64) -> Self {
        let answer = approval.answer.as_ref();
        let by = answer.map_or("server", |answer| &answer.by);
        Self {
            id: id(at),
            at,
            owner: approval.owner.clone(),
            by: by.to_owned(),
            via: answer.map_or("server", |answer| &answer.via).to_owned(),
            decision: word(approval.state).to_owned(),
            approval: Some(approval.id.clone()),
            session: Some(approval.session.clone()),
            subject: approval.summary.clone(),
            digest: Some(approval.digest.clone()),
            rule: answer.and_then(|answer| answer.rule.clone()),
            scope: answer.map_or(Scope::Once, |answer| answer.scope),
            run: Some(approval.run.clone()),
            sandbox: None,
        }
    }
}

impl Audited {
    /// The entry for a change of a space.
    pub(crate) fn of_space(space: &Space, what: &str, by: &str, subject: String, at: u64) -> Self {
        Self {
            id: id(at),
            at,
            owner: space.owner.clone(),
            by: by.to_owned(),
            via: "server".to_owned(),
            decision: what.to_owned(),
            approval: None,
            session: None,
            subject,
            digest: None,
            rule: None,
            scope: Scope::Always,
            run: None,
            sandbox: None,
        }
    }

    /// The entry for a change of a session.
    pub(crate) fn of_session(
        session: &Session,
        what: &str,
        by: &str,
        subject: String,
        at: u64,
    ) -> Self {
        Self {
            id: id(at),
            at,
            owner: session.owner.clone(),
            by: by.to_owned(),
            via: "server".to_owned(),
            decision: what.to_owned(),
            approval: None,
            session: Some(session.id.clone()),
            subject,
            digest: None,
            rule: None,
            scope: Scope::Session,
            run: None,
            sandbox: None,
        }
    }

    /// The entry for a run whose commands were in a sandbox.
    pub(crate) fn of_run(run: &Run, sandbox: &Value, at: u64) -> Self {
        Self {
            id: id(at),
            at,
            owner: run.owner.clone(),
            by: "server".to_owned(),
            via: "server".to_owned(),
            decision: "sandboxed".to_owned(),
            approval: None,
            session: Some(run.session.clone()),
            subject: enforced(sandbox),
            digest: None,
            rule: None,
            scope: Scope::Once,
            run: Some(run.id.clone()),
            sandbox: Some(sandbox.clone()),
        }
    }
}

/// What was enforced, in one line.
fn enforced(sandbox: &Value) -> String {
    let text = |name: &str| sandbox[name].as_str().unwrap_or("unknown").to_owned();
    let layers = sandbox["layers"].as_object().into_iter().flatten();
    let layers: Vec<&str> =
        layers.filter(|(_, is_on)| **is_on == true).map(|(name, _)| name.as_str()).collect();
    let missing = sandbox["missing"].as_array().map_or(0, Vec::len);
    let missing = if missing > 0 { format!("; {missing} not enforced") } else { String::new() };
    let layers = layers.join(", ");
    format!("{}: {layers}; network {}{missing}", text("backend"), text("network"))
}

/// An id that sorts by time.
pub fn id(at: u64) -> String {
    format!("{at:016x}_{}", uuid::Uuid::new_v4().simple())
}

fn word(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Pending => "pending",
        ApprovalState::Allowed => "allowed",
        ApprovalState::Denied => "denied",
        ApprovalState::Expired => "expired",
        ApprovalState::Withdrawn => "withdrawn",
    }
}

kept!(Audited, "audit");
