//! Permission rules granted by users. They live on the server, not in the engine, so revoking one takes effect immediately.
//!
//! Rules are values and never parsed from joined text: a command may contain any separator. The engine's policy
//! ([`coverage`]) decides whether a granted rule allows a call.

use std::collections::HashMap;
use std::path::PathBuf;

use ostler::engine::coverage::{self, CallPlace};
use ostler::proto::control::{CanUseTool, DecisionReasonType};
use ostler::proto::permission::{PermissionBehavior, PermissionRule, PermissionUpdate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::{Approval, Origin, Scope};
use crate::confine::redact::Redactor;
use crate::records::kept;

/// A permission rule: a tool, or some uses of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRule {
    pub tool_name: String,
    /// Which uses; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rule_content: Option<String>,
}

impl ToolRule {
    fn of(rule: &PermissionRule) -> Self {
        Self { tool_name: rule.tool_name.clone(), rule_content: rule.rule_content.clone() }
    }

    pub(super) fn to_wire(&self) -> PermissionRule {
        PermissionRule {
            tool_name: self.tool_name.clone(),
            rule_content: self.rule_content.clone(),
            ..PermissionRule::default()
        }
    }

    fn label(&self) -> String {
        match &self.rule_content {
            Some(content) => format!("{}({content})", self.tool_name),
            None => self.tool_name.clone(),
        }
    }
}

/// Rules that the scopes `session` and `always` grant together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// The text for people, and the name by which an answer picks the offer. It is unique in an approval.
    pub(crate) label: String,
    /// What is granted.
    pub rules: Vec<ToolRule>,
    /// Whether one of the rules allows every use of its tool. Granting it needs `wholeTool` in the answer.
    pub whole_tool: bool,
}

/// A rule that a user granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    pub id: String,
    /// The user for whose sessions the rule applies.
    pub owner: String,
    /// The only session for which the rule applies, if it was granted for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The working directory of the sessions for which the rule applies, if it was granted for all of them (`always`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The space of those sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// Whether it also applies to runs that hooks and schedules start.
    #[serde(default)]
    pub unattended: bool,
    /// The text for people.
    pub rule: String,
    /// The rules. Empty in records of earlier versions, which grant nothing until they are upgraded.
    #[serde(default)]
    pub rules: Vec<ToolRule>,
    /// The user who granted it.
    pub by: String,
    /// The approval with which it was granted.
    pub(crate) approval: String,
    /// Milliseconds since 1970.
    pub created: u64,
    /// When it last answered a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_used: Option<u64>,
}

impl Granted {
    /// Whether the rule applies to the session and folder of this request.
    fn holds_for(&self, asked: &Approval) -> bool {
        let here = match (&self.session, &self.folder) {
            (Some(session), _) => *session == asked.session,
            (None, Some(folder)) => {
                *folder == asked.origin.folder && self.space == asked.origin.space
            }
            (None, None) => false,
        };
        here && self.owner == asked.owner && (self.unattended || !asked.origin.unattended)
    }

    pub fn scope(&self) -> Scope {
        if self.session.is_some() { Scope::Session } else { Scope::Always }
    }

    /// A redacted copy.
    pub(super) fn redacted(mut self, redactor: &Redactor) -> Self {
        redact(&mut self.rules, redactor);
        self
    }
}

kept!(Granted, "rule");

pub(super) fn redact(rules: &mut [ToolRule], redactor: &Redactor) {
    for content in rules.iter_mut().filter_map(|rule| rule.rule_content.as_mut()) {
        *content = redactor.text(content).into_owned();
    }
}

/// The rules that can be granted beyond this call: those suggestions of the engine that allow, and that cover exactly
/// this call. Without a suggestion nothing is offered, and the call can only be allowed once.
pub(super) fn offers(
    call: &CanUseTool,
    origin: &Origin,
    everywhere: &CallPlace,
    redactor: &Redactor,
) -> Vec<Offer> {
    if !is_answered_by_rules(call, origin) {
        return Vec::new();
    }
    let place = origin.place(everywhere);
    let suggestions = call.permission_suggestions.iter().flatten().filter_map(suggested);
    let covering = suggestions
        .filter(|rules| coverage::covers(&place, rules, &call.tool_name, &call.input))
        .map(|rules| offer(&rules, redactor));
    let mut offers: Vec<Offer> = Vec::new();
    for offer in covering {
        if !offers.contains(&offer) {
            offers.push(offer);
        }
    }
    with_unique_labels(offers)
}

/// Removes offers whose label is not unique, because an answer picks an offer by its label.
fn with_unique_labels(mut offers: Vec<Offer>) -> Vec<Offer> {
    let mut uses: HashMap<String, usize> = HashMap::new();
    offers.iter().for_each(|offer| *uses.entry(offer.label.clone()).or_default() += 1);
    offers.retain(|offer| uses[&offer.label] == 1);
    offers
}

/// Whether granted rules may answer this request. They may not if a protected path, an ask rule, a hook, the sandbox or
/// a question for a person requires approval, or if the reason is missing or unknown.
fn is_answered_by_rules(call: &CanUseTool, origin: &Origin) -> bool {
    use DecisionReasonType::{Mode, SubcommandResults, Unspecified, WorkingDir};
    let reason = call.decision_reason_type.as_ref();
    matches!(reason, Some(Mode | SubcommandResults | Unspecified | WorkingDir))
        && call.suppress_always_allow_rule != Some(true)
        && call.requires_user_interaction != Some(true)
        && call.matched_ask_rule.is_none()
        && !origin.people_only
}

fn suggested(update: &PermissionUpdate) -> Option<Vec<PermissionRule>> {
    let PermissionUpdate::AddRules(update) = update else { return None };
    let allows = update.behavior == PermissionBehavior::Allow && !update.rules.is_empty();
    allows.then(|| update.rules.clone())
}

fn offer(rules: &[PermissionRule], redactor: &Redactor) -> Offer {
    let whole_tool = rules.iter().any(coverage::is_whole_tool);
    let rules: Vec<ToolRule> = rules.iter().map(ToolRule::of).collect();
    Offer { label: redactor.text(&label(&rules)).into_owned(), rules, whole_tool }
}

pub(super) fn label(rules: &[ToolRule]) -> String {
    rules.iter().map(ToolRule::label).collect::<Vec<_>>().join(" and ")
}

/// The smallest set of granted rules that together allow the call. Empty if they do not.
pub(super) fn covering(
    mut granted: Vec<Granted>,
    asked: &Approval,
    everywhere: &CallPlace,
) -> Vec<Granted> {
    if asked.offers.is_empty() {
        return Vec::new();
    }
    let place = asked.origin.place(everywhere);
    let covers = |granted: &[Granted]| {
        let rules: Vec<_> =
            granted.iter().flat_map(|it| &it.rules).map(ToolRule::to_wire).collect();
        coverage::covers(&place, &rules, &asked.tool_name, &asked.input)
    };
    granted.retain(|granted| granted.holds_for(asked));
    if !covers(&granted) {
        return Vec::new();
    }
    for index in (0..granted.len()).rev() {
        let mut fewer = granted.clone();
        fewer.remove(index);
        if covers(&fewer) {
            granted = fewer;
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn call(reason: &str, rules: &[&[(&str, &str)]]) -> CanUseTool {
        let update = |rules: &&[(&str, &str)]| {
            let rules: Vec<Value> = rules
                .iter()
                .map(|(tool, content)| json!({"toolName": tool, "ruleContent": content}))
                .collect();
            json!({"type": "addRules", "behavior": "allow", "destination": "session", "rules": rules})
        };
        let suggestions: Vec<Value> = rules.iter().map(update).collect();
        let call = json!({"tool_name": "Bash", "input": {"command": "touch a && make b"},
            "decision_reason_type": reason, "permission_suggestions": suggestions});
        serde_json::from_value(call).unwrap()
    }

    fn offered(call: &CanUseTool) -> Vec<Offer> {
        let origin = Origin { folder: "/nowhere".into(), ..Origin::default() };
        offers(call, &origin, &CallPlace::default(), &Redactor::default())
    }

    // Mutant: `offers` that does not ask whether the rules cover the call.
    #[test]
    fn only_rules_that_cover_the_call_are_offered_without_duplicates() {
        let both: &[(&str, &str)] = &[("Bash", "touch:*"), ("Bash", "make:*")];
        let offers = offered(&call("subcommandResults", &[both, both, &both[..1]]));
        assert_eq!(offers.len(), 1, "{offers:?}");
        assert_eq!(offers[0].label, "Bash(touch:*) and Bash(make:*)");
        assert!(!offers[0].whole_tool);
        let mut mode = call("mode", &[]);
        let update = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
        mode.permission_suggestions = Some(vec![serde_json::from_value(update).unwrap()]);
        assert!(offered(&mode).is_empty());
    }

    // Mutant: `is_answered_by_rules` that says yes to one of these.
    #[test]
    fn nothing_is_offered_for_requests_that_rules_may_not_answer() {
        let both: &[&[(&str, &str)]] = &[&[("Bash", "touch:*"), ("Bash", "make:*")]];
        for reason in ["safetyCheck", "rule", "sandboxOverride", "hook", "classifier", "new one"] {
            assert!(offered(&call(reason, both)).is_empty(), "{reason}");
        }
        let reported = call("subcommandResults", both);
        assert_eq!(offered(&reported).len(), 1);
        for change in [
            |call: &mut CanUseTool| call.decision_reason_type = None,
            |call: &mut CanUseTool| call.suppress_always_allow_rule = Some(true),
            |call: &mut CanUseTool| call.requires_user_interaction = Some(true),
            |call: &mut CanUseTool| call.matched_ask_rule = Some(Default::default()),
        ] {
            let mut changed = reported.clone();
            change(&mut changed);
            assert!(offered(&changed).is_empty(), "{changed:?}");
        }
    }

    // Mutant: `with_unique_labels` that keeps the first of two.
    #[test]
    fn two_offers_with_the_same_label_are_both_removed() {
        let offer = |rules: &[&str]| {
            let rule = |content: &&str| ToolRule {
                tool_name: "Bash".to_owned(),
                rule_content: Some((*content).to_owned()),
            };
            let rules: Vec<_> = rules.iter().map(rule).collect();
            Offer { label: label(&rules), rules, whole_tool: false }
        };
        let (two, one) = (offer(&["touch:*", "make:*"]), offer(&["touch:*) and Bash(make:*"]));
        assert_eq!(two.label, one.label, "the labels are equal");
        let third = offer(&["ls:*"]);
        assert_eq!(with_unique_labels(vec![two, third.clone(), one]), [third]);
    }
}
