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

/// Between rules that are granted together.
const JOINT: &str = " + ";

/// A command with one of these may be several, of which only the first begins as the rule says.
const MORE_THAN_ONE: [char; 13] =
    [';', '|', '&', '$', '`', '<', '>', '{', '}', '\\', '#', '\n', '\r'];

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
    Some(rules.join(JOINT))
}

fn written(rule: &PermissionRule) -> String {
    match &rule.rule_content {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name.clone(),
    }
}

/// Whether a granted line covers a call: it is the whole tool, or one that the engine itself suggests for the call, or
/// wider than that. What is not certainly wider is not.
pub(crate) fn covers(granted: &str, tool: &str, offered: &[String]) -> bool {
    let rules: Vec<&str> = granted.split(JOINT).collect();
    let covered =
        |line: &str| line.split(JOINT).all(|one| rules.iter().any(|rule| is_wider(rule, one)));
    granted == tool || offered.iter().any(|line| line == granted || covered(line))
}

/// Whether a rule allows all that another one allows.
fn is_wider(rule: &str, narrow: &str) -> bool {
    let (Some((tool, rule)), Some((narrow_tool, narrow))) = (parts(rule), parts(narrow)) else {
        return false;
    };
    let Some(rule) = rule else { return tool == narrow_tool };
    let Some(narrow) = narrow.filter(|_| tool == narrow_tool) else { return false };
    // What a text means depends on the tool: a pattern for paths says nothing about commands.
    if let ("Bash", Some(prefix)) = (tool, rule.strip_suffix(":*")) {
        let narrow = narrow.strip_suffix(":*").unwrap_or(narrow);
        let is_plain = !prefix.trim().is_empty() && !narrow.contains(MORE_THAN_ONE);
        let rest = narrow.strip_prefix(prefix).filter(|_| is_plain);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    }
    if let ("Read" | "Edit" | "Write", Some(folder)) = (tool, rule.strip_suffix("/**")) {
        let below = narrow.strip_prefix(folder).filter(|_| !folder.contains(['*', '?', '[']));
        return below.is_some_and(|rest| rest.starts_with('/') && !rest.contains(".."));
    }
    rule == narrow
}

/// The tool of a rule and what of it is allowed. Nothing with brackets inside: where such a rule ends is not certain.
fn parts(rule: &str) -> Option<(&str, Option<&str>)> {
    let is_name = |it: &str| !it.is_empty() && !it.contains([' ', '(', ')', ':', '*']);
    match rule.split_once('(') {
        None => is_name(rule).then_some((rule, None)),
        Some((tool, content)) => {
            let content = content.strip_suffix(')').filter(|it| !it.contains(['(', ')']))?;
            is_name(tool).then_some((tool, Some(content)))
        }
    }
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
        assert!(!covers("Read", "Bash", &lines));
    }

    #[test]
    fn a_wider_rule_covers_too_and_a_doubtful_one_does_not() {
        for (granted, offered, expected) in [
            ("Bash(git:*)", "Bash(git log:*)", true),
            ("Bash(git log:*)", "Bash(git log --oneline)", true),
            ("Bash(touch:*)", "Bash(touch a.txt)", true),
            ("Bash(touch:*)", "Bash(touch a.txt; rm -r b)", false),
            ("Bash(touch:*)", "Bash(touch a.txt\nrm -r b)", false),
            ("Bash(touch:*)", "Bash(touch $HOME > x)", false),
            ("Bash(gi:*)", "Bash(git log:*)", false),
            ("Bash(:*)", "Bash(git log:*)", false),
            ("Bash( :*)", "Bash( git)", false),
            ("Bash(git log --oneline)", "Bash(git log:*)", false),
            ("Bash(git push:*)", "Bash(git log:*)", false),
            ("Bash(git:*)", "Bash(git log:*) + Bash(wc:*)", false),
            ("Bash(git:*) + Bash(wc:*)", "Bash(git log:*) + Bash(wc:*)", true),
            ("Bash + Read", "Bash(git log:*)", true),
            ("Bash(a:*) + Bash(b:*)", "Bash(a $(x) + Bash(b)", false),
            ("Bash(rm /**)", "Bash(rm /a; curl b)", false),
            ("Read(a:*)", "Read(a b)", false),
            ("Read(//src/**)", "Read(//src/deep/**)", true),
            ("Read(//src/**)", "Read(//src/../etc/**)", false),
            ("Read(//src/**)", "Read(//srcs/**)", false),
            ("Write(//src/**)", "Read(//src/deep/**)", false),
            ("Read(//src/deep)", "Read", false),
            ("", "Read", false),
        ] {
            let lines = [offered.to_owned()];
            assert_eq!(covers(granted, "Other", &lines), expected, "{granted} for {offered}");
        }
    }
}
