//! Who decided on a call, in the words of the wire.

use ostler_proto::ToolUseId;
use ostler_proto::control::DecisionReasonType;
use ostler_proto::message::{PermissionDecisionMeta, ToolResultMeta};
use ostler_proto::permission::Allow;

/// Who decided on a call, and what kind of reason there was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Judge {
    source: &'static str,
    reason_type: Option<String>,
}

impl Judge {
    /// Settings, the mode, or what the engine itself holds.
    pub(super) fn config(reason: &DecisionReasonType) -> Self {
        Self { source: "config", reason_type: Some(reason.to_string()) }
    }

    pub(super) fn hook() -> Self {
        Self { source: "hook", reason_type: Some(DecisionReasonType::Hook.to_string()) }
    }

    /// Whoever was asked said yes: for this once, or for good.
    pub(super) fn host(allow: &Allow) -> Self {
        let lasts = allow.updated_permissions.as_ref().is_some_and(|updates| !updates.is_empty());
        Self { source: if lasts { "user_permanent" } else { "user_temporary" }, reason_type: None }
    }

    /// Whoever was asked said no, or nothing that makes sense.
    pub(super) fn refusing_host() -> Self {
        Self { source: "user_reject", reason_type: None }
    }

    /// The call may run.
    pub(super) fn accepts(self, call: &ToolUseId) -> ToolResultMeta {
        self.meta(call, "accept", None)
    }

    /// The call does not run.
    pub(super) fn rejects(self, call: &ToolUseId) -> ToolResultMeta {
        self.meta(call, "reject", Some("permission-rule".to_owned()))
    }

    fn meta(self, call: &ToolUseId, decision: &str, not_run: Option<String>) -> ToolResultMeta {
        let permission_decision = PermissionDecisionMeta {
            decision: decision.to_owned(),
            source: Some(self.source.to_owned()),
            reason_type: self.reason_type,
            ..PermissionDecisionMeta::default()
        };
        ToolResultMeta {
            id: call.clone(),
            non_execution_kind: not_run,
            permission_decision: Some(permission_decision),
            ..ToolResultMeta::default()
        }
    }
}
