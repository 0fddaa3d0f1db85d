//! The combined answer of all hooks of one event. Pure.
//!
//! Hooks run in parallel and do not know each other, so the strictest answer counts: one that denies outweighs all that
//! ask or allow, one that asks outweighs those that allow.

use ostler_proto::hook::{
    ElicitationAction, HookDecision, HookOutput, HookSpecificOutput, PermissionDecision,
    PermissionRequestDecision,
};
use serde_json::Value;

/// The combined answer of all hooks of an event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    /// For or against a tool call, and why.
    pub(crate) decision: Option<(HookPermission, String)>,
    /// Another input for the tool. The last hook's counts.
    pub(crate) updated_input: Option<Value>,
    /// Another output in place of the tool's.
    pub(crate) updated_output: Option<Value>,
    /// The same, only for tools of MCP servers.
    pub(crate) updated_mcp_output: Option<Value>,
    /// Text for the model.
    pub(crate) context: Vec<String>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// The turn must end, and the text that the user reads.
    pub(crate) stop: Option<String>,
    /// An objection to the prompt, the result or the end of the turn.
    pub(crate) block: Option<String>,
    /// No hook objected, but a guard gave no answer.
    pub(crate) unheard: bool,
    /// An answer to a permission question.
    pub(crate) permission: Option<PermissionRequestDecision>,
    /// The model may try a refused call again.
    pub(crate) may_retry: bool,
    /// Text that goes before the first prompt, as if the user had sent it.
    pub(crate) first_words: Vec<String>,
    /// The model does not read the prompt itself.
    pub(crate) hides_prompt: bool,
    /// A title for the session.
    pub(crate) title: Option<String>,
    /// The files to watch from now on, in place of those before.
    pub(crate) watch_paths: Option<Vec<String>>,
    /// An answer to an MCP server, and its content.
    pub(crate) elicited: Option<(ElicitationAction, Option<Value>)>,
    /// The text that the user sees in place of the model's.
    pub(crate) display: Option<String>,
}

/// For or against a tool call, the strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HookPermission {
    Allow,
    Ask,
    Deny,
}

impl Verdict {
    /// Adds one hook's answer. An empty answer and one that only announces a background run change nothing.
    pub(crate) fn add(&mut self, output: HookOutput) {
        if output.is_detached() {
            return;
        }
        self.warnings.extend(output.system_message);
        if output.r#continue == Some(false) {
            self.stop = Some(output.stop_reason.unwrap_or_default());
        }
        match output.decision {
            Some(HookDecision::Block) => self.object(output.reason.clone().unwrap_or_default()),
            Some(HookDecision::Approve) => {
                self.decide(HookPermission::Allow, output.reason.clone().unwrap_or_default())
            }
            Some(_) | None => {}
        }
        if let Some(specific) = output.hook_specific_output {
            self.add_specific(specific);
        }
    }

    fn add_specific(&mut self, output: HookSpecificOutput) {
        let context = match output {
            HookSpecificOutput::PreToolUse(output) => {
                let reason = output.permission_decision_reason.unwrap_or_default();
                match output.permission_decision {
                    Some(PermissionDecision::Allow) => self.decide(HookPermission::Allow, reason),
                    Some(PermissionDecision::Ask) => self.decide(HookPermission::Ask, reason),
                    // An unknown decision must not allow a call.
                    Some(_) => self.decide(HookPermission::Deny, reason),
                    None => {}
                }
                if output.updated_input.is_some() {
                    self.updated_input = output.updated_input;
                }
                output.additional_context
            }
            HookSpecificOutput::PostToolUse(output) => {
                self.updated_output = output.updated_tool_output.or(self.updated_output.take());
                self.updated_mcp_output =
                    output.updated_mcp_tool_output.or(self.updated_mcp_output.take());
                output.additional_context
            }
            HookSpecificOutput::PermissionRequest(output) => {
                self.permit(output.decision);
                None
            }
            HookSpecificOutput::PostToolUseFailure(output) => output.additional_context,
            HookSpecificOutput::PostToolBatch(output) => output.additional_context,
            HookSpecificOutput::Notification(output) => output.additional_context,
            HookSpecificOutput::UserPromptSubmit(output) => {
                self.hides_prompt |= output.suppress_original_prompt == Some(true);
                self.title = output.session_title.or(self.title.take());
                output.additional_context
            }
            HookSpecificOutput::SessionStart(output) => {
                self.first_words.extend(output.initial_user_message);
                self.title = output.session_title.or(self.title.take());
                self.watch(output.watch_paths);
                output.additional_context
            }
            HookSpecificOutput::UserPromptExpansion(output) => {
                self.hides_prompt |= output.suppress_original_prompt == Some(true);
                output.additional_context
            }
            HookSpecificOutput::Setup(output) => output.additional_context,
            HookSpecificOutput::PreModelSwitch(output) => {
                let reason = output.permission_decision_reason.unwrap_or_default();
                match output.permission_decision {
                    Some(PermissionDecision::Allow) | None => {}
                    // A change of the model cannot be put to the user, so everything else is a no.
                    Some(_) => self.object(reason),
                }
                None
            }
            HookSpecificOutput::PostModelSwitch(output) => output.additional_context,
            HookSpecificOutput::CwdChanged(output) => {
                self.watch(output.watch_paths);
                None
            }
            HookSpecificOutput::FileChanged(output) => {
                self.watch(output.watch_paths);
                None
            }
            HookSpecificOutput::Elicitation(output) => {
                self.elicit(output.action, output.content);
                None
            }
            HookSpecificOutput::ElicitationResult(output) => {
                self.elicit(output.action, output.content);
                None
            }
            HookSpecificOutput::MessageDisplay(output) => {
                self.display = output.display_content.or(self.display.take());
                None
            }
            HookSpecificOutput::PermissionDenied(output) => {
                self.may_retry |= output.retry == Some(true);
                None
            }
            HookSpecificOutput::Stop(output) => output.additional_context,
            HookSpecificOutput::SubagentStart(output) => output.additional_context,
            HookSpecificOutput::SubagentStop(output) => output.additional_context,
            // Not in the published list, but the only way to give instructions for a summary.
            HookSpecificOutput::Unknown(output) => {
                output.get("additionalContext").and_then(Value::as_str).map(str::to_owned)
            }
            _ => None,
        };
        self.context.extend(context.filter(|text| !text.is_empty()));
    }

    /// Notes an objection.
    pub(crate) fn object(&mut self, reason: String) {
        self.decide(HookPermission::Deny, reason.clone());
        self.block = Some(reason);
        self.unheard = false;
    }

    /// Notes that a guard gave no answer. The reason of another guard is kept instead.
    pub(crate) fn fail(&mut self, why: String) {
        self.decide(HookPermission::Deny, why.clone());
        self.unheard |= self.block.is_none();
        self.block.get_or_insert(why);
    }

    /// Notes files to watch; the lists of several hooks are joined.
    fn watch(&mut self, paths: Option<Vec<String>>) {
        if let Some(paths) = paths {
            self.watch_paths.get_or_insert_default().extend(paths);
        }
    }

    /// Notes an answer to an MCP server; only one that accepts can be replaced.
    fn elicit(&mut self, action: Option<ElicitationAction>, content: Option<Value>) {
        let accepts = |known: &(ElicitationAction, _)| known.0 == ElicitationAction::Accept;
        if let Some(action) = action
            && self.elicited.as_ref().is_none_or(accepts)
        {
            self.elicited = Some((action, content));
        }
    }

    /// Notes an answer to a permission question; only a yes can be replaced.
    fn permit(&mut self, decision: PermissionRequestDecision) {
        let is_yes = |known: &PermissionRequestDecision| {
            matches!(known, PermissionRequestDecision::Allow(_))
        };
        if self.permission.as_ref().is_none_or(is_yes) {
            self.permission = Some(decision);
        }
    }

    /// Notes a decision unless there is a stricter one.
    pub(crate) fn decide(&mut self, word: HookPermission, reason: String) {
        if self.decision.as_ref().is_none_or(|(known, _)| *known < word) {
            self.decision = Some((word, reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn together(outputs: impl IntoIterator<Item = HookOutput>) -> Verdict {
        let mut verdict = Verdict::default();
        outputs.into_iter().for_each(|output| verdict.add(output));
        verdict
    }

    fn word(outputs: impl IntoIterator<Item = HookOutput>) -> Option<HookPermission> {
        together(outputs).decision.map(|(word, _)| word)
    }

    #[test]
    fn the_strictest_decision_counts_in_any_order() {
        let (allow, ask, deny) =
            (HookOutput::allow(), HookOutput::ask("hm"), HookOutput::deny("no"));
        assert_eq!(word([HookOutput::none()]), None);
        assert_eq!(word([allow.clone(), HookOutput::none()]), Some(HookPermission::Allow));
        assert_eq!(word([ask.clone(), allow.clone()]), Some(HookPermission::Ask));
        assert_eq!(word([deny.clone(), allow.clone(), ask.clone()]), Some(HookPermission::Deny));
        assert_eq!(word([allow, ask, deny]), Some(HookPermission::Deny));
    }

    #[test]
    fn an_unknown_decision_denies() {
        let output = serde_json::from_value(json!({"hookSpecificOutput":
            {"hookEventName": "PreToolUse", "permissionDecision": "maybe"}}));
        assert_eq!(word([output.unwrap()]), Some(HookPermission::Deny));
    }

    #[test]
    fn an_objection_a_stop_and_context_are_all_kept() {
        let context: HookOutput =
            serde_json::from_value(json!({"systemMessage": "careful", "hookSpecificOutput":
            {"hookEventName": "UserPromptSubmit", "additionalContext": "it rains"}}))
            .unwrap();
        let verdict =
            together([HookOutput::block("tests fail"), HookOutput::stop("enough"), context]);
        assert_eq!(verdict.block.as_deref(), Some("tests fail"));
        assert_eq!(verdict.stop.as_deref(), Some("enough"));
        assert_eq!(verdict.context, ["it rains"]);
        assert_eq!(verdict.warnings, ["careful"]);
    }

    #[test]
    fn one_no_outweighs_every_yes_to_a_permission_question() {
        let (yes, no) = (PermissionRequestDecision::allow(), PermissionRequestDecision::deny("no"));
        for order in [[yes.clone(), no.clone()], [no.clone(), yes]] {
            let verdict = together(order.map(HookOutput::decide));
            assert_eq!(verdict.permission, Some(no.clone()));
        }
    }

    #[test]
    fn a_hook_that_continues_in_the_background_decides_nothing() {
        let detached = HookOutput { decision: Some(HookDecision::Block), ..HookOutput::detached() };
        assert_eq!(together([detached]), Verdict::default());
    }
}
