//! `ostler explain`: the decision on a hypothetical call, as text.

use std::fmt::Write;

use ostler_proto::permission::PermissionUpdate;

use super::command;
use super::decision::{CallFacts, Outcome};
use super::matching::ResolvedCall;
use super::policy::Policy;
use super::rule::Rule;

/// Describes the decision on a call, and its reasons.
pub fn explain(policy: &Policy, call: &CallFacts<'_>) -> String {
    let decision = policy.decide(call);
    let mut text = String::new();
    let outcome = match decision.outcome {
        Outcome::Allow => "allowed",
        Outcome::Ask => "asked about",
        Outcome::Deny => "denied",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} would be {outcome}: {}", call.tool, decision.reason);
    if let Some(shell) = ResolvedCall::new(policy, *call).shell {
        let _ = writeln!(text, "\nThe command:");
        let accepts_edits =
            policy.effective_mode() == ostler_proto::permission::PermissionMode::AcceptEdits;
        for verdict in command::verdicts(policy, &shell, accepts_edits) {
            let mark = if verdict.is_allowed { "yes" } else { "no " };
            let _ = writeln!(text, "  {mark} {}: {}", verdict.what, verdict.why);
        }
    }
    let _ = writeln!(text, "\nStep by step:");
    for (n, step) in decision.chain.iter().enumerate() {
        let _ = writeln!(text, "  {}. {step}", n + 1);
    }
    if let Some(path) = &decision.blocked_path {
        let _ = writeln!(text, "\nThe path that prevents it: {}", path.display());
    }
    if !decision.suggestions.is_empty() {
        let _ = writeln!(text, "\nWhat would allow it:");
        for update in &decision.suggestions {
            let _ = writeln!(text, "  {}", in_words(update));
        }
    }
    text
}

fn in_words(update: &PermissionUpdate) -> String {
    match update {
        PermissionUpdate::AddRules(update) => {
            let rules: Vec<_> = update
                .rules
                .iter()
                .map(|rule| {
                    Rule { tool: rule.tool_name.clone(), content: rule.rule_content.clone() }
                        .to_string()
                })
                .collect();
            format!("the rule {} ({})", rules.join(", "), update.destination)
        }
        PermissionUpdate::SetMode(update) => {
            format!("the mode {} ({})", update.mode, update.destination)
        }
        PermissionUpdate::AddDirectories(update) => {
            format!("the directory {} ({})", update.directories.join(", "), update.destination)
        }
        other => format!("{other:?}"),
    }
}
