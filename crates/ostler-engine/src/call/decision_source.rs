//! Who decided on a call, with the names of the wire protocol.

use ostler_proto::ToolUseId;
use ostler_proto::build;
use ostler_proto::control::DecisionReasonType;
use ostler_proto::message::{PermissionDecisionMeta, ToolResultMeta};
use ostler_proto::permission::{Allow, DecisionClassification};

/// Who decided on a call, and what kind of reason there was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DecisionSource {
    /// `None` where the protocol has no name for it: the turn was stopped.
    source: Option<String>,
    reason_type: Option<String>,
    /// The call itself was not decided on.
    is_given_up: bool,
}

impl DecisionSource {
    /// Settings, the mode or the engine itself decided.
    pub(super) fn config(reason: &DecisionReasonType) -> Self {
        Self::named("config", Some(reason))
    }

    pub(super) fn hook() -> Self {
        Self::named("hook", Some(&DecisionReasonType::Hook))
    }

    /// The host allowed the call: this once, unless its answer says otherwise.
    pub(super) fn host(allow: &Allow) -> Self {
        let said = allow.decision_classification.as_ref();
        Self::named(said.map_or("user_temporary", DecisionClassification::as_str), None)
    }

    /// The host said no.
    pub(super) fn refusing_host() -> Self {
        Self::named("user_reject", None)
    }

    /// The host said no and stopped the turn.
    pub(super) fn stopping_host() -> Self {
        Self { is_given_up: true, ..Self::default() }
    }

    /// No one could be asked.
    pub(super) fn no_one() -> Self {
        Self { is_given_up: true, ..Self::named("config", None) }
    }

    fn named(source: &str, reason: Option<&DecisionReasonType>) -> Self {
        Self {
            source: Some(source.to_owned()),
            reason_type: reason.map(ToString::to_string),
            is_given_up: false,
        }
    }

    /// The call may run.
    pub(super) fn accepts(self, call: &ToolUseId) -> ToolResultMeta {
        // A yes without a particular reason has no reason field.
        let is_known = |kind: &String| *kind != DecisionReasonType::Unspecified.to_string();
        let reason_type = self.reason_type.clone().filter(is_known);
        Self { reason_type, ..self }.meta(call, "accept", None)
    }

    /// The call does not run.
    pub(super) fn rejects(self, call: &ToolUseId) -> ToolResultMeta {
        let why = if self.is_given_up { "user-rejected" } else { "permission-rule" };
        self.meta(call, "reject", Some(why.to_owned()))
    }

    fn meta(self, call: &ToolUseId, decision: &str, not_run: Option<String>) -> ToolResultMeta {
        let Self { source, reason_type, .. } = self;
        let permission_decision = source.map(|source| {
            build!(PermissionDecisionMeta {
                decision: decision.to_owned(),
                source: Some(source),
                reason_type
            })
        });
        build!(ToolResultMeta {
            id: call.clone(),
            non_execution_kind: not_run,
            permission_decision
        })
    }
}
