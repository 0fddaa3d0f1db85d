//! Rules that people have granted. They are kept here and not in the engine, so that taking one back holds at once.

use std::collections::HashSet;

use ostler::proto::permission::{PermissionBehavior, PermissionRule, PermissionUpdate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::Scope;
use crate::records::kept;

/// A rule that somebody granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Granted {
    pub(crate) id: String,
    /// The user for whose sessions it holds.
    pub(crate) owner: String,
    /// The session for which it holds; all of the user's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The rule: `Bash(git log:*)`. Several stand together when one call needs them all.
    pub(crate) rule: String,
    /// Who granted it.
    pub(crate) by: String,
    /// The approval with which it was granted.
    pub(crate) approval: String,
    /// Milliseconds since 1970.
    pub(crate) created: u64,
    /// When it last spared a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_used: Option<u64>,
}

impl Granted {
    /// Whether it holds for a session of a user.
    pub(crate) fn holds_in(&self, owner: &str, session: &str) -> bool {
        self.owner == owner && self.session.as_deref().is_none_or(|only| only == session)
    }

    pub(crate) fn scope(&self) -> Scope {
        if self.session.is_some() { Scope::Session } else { Scope::Always }
    }
}

kept!(Granted, "rule");

/// The rules an engine suggests for a call, one line for each suggestion. A suggestion of another kind, such as a
/// change of mode, would allow far more than this call and is not offered. Without any, the tool itself is offered.
pub(crate) fn offered(tool: &str, suggestions: &[PermissionUpdate]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut offered: Vec<String> = suggestions.iter().filter_map(line).collect();
    offered.retain(|line| seen.insert(line.clone()));
    if offered.is_empty() {
        offered.push(tool.to_owned());
    }
    offered
}

fn line(update: &PermissionUpdate) -> Option<String> {
    let PermissionUpdate::AddRules(update) = update else { return None };
    if update.behavior != PermissionBehavior::Allow || update.rules.is_empty() {
        return None;
    }
    let rules: Vec<String> = update.rules.iter().map(written).collect();
    Some(rules.join(" + "))
}

fn written(rule: &PermissionRule) -> String {
    match &rule.rule_content {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name.clone(),
    }
}

/// Whether one of the granted lines covers a call: it is one that the engine itself suggests for the call, or it is
/// the whole tool.
pub(crate) fn covers(granted: &str, tool: &str, offered: &[String]) -> bool {
    granted == tool || offered.iter().any(|line| line == granted)
}

#[cfg(test)]
mod tests {
    use ostler::proto::permission::PermissionUpdate;
    use serde_json::json;

    use super::{covers, offered};

    fn update(value: serde_json::Value) -> PermissionUpdate {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_rules_that_allow_are_offered() {
        let suggestions = [
            update(json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
                "rules": [{"toolName": "Bash", "ruleContent": "git log:*"}, {"toolName": "Bash", "ruleContent": "wc:*"}]})),
            update(json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"})),
            update(json!({"type": "addRules", "behavior": "deny", "destination": "session",
                "rules": [{"toolName": "Bash"}]})),
        ];
        assert_eq!(offered("Bash", &suggestions), ["Bash(git log:*) + Bash(wc:*)"]);
        assert_eq!(offered("mcp__x__y", &suggestions[1..]), ["mcp__x__y"]);
    }

    #[test]
    fn a_rule_covers_what_it_was_suggested_for_and_its_whole_tool() {
        let lines = vec!["Bash(git log:*)".to_owned()];
        assert!(covers("Bash(git log:*)", "Bash", &lines));
        assert!(covers("Bash", "Bash", &lines));
        assert!(!covers("Bash(git:*)", "Bash", &lines));
        assert!(!covers("Read", "Bash", &lines));
    }
}
