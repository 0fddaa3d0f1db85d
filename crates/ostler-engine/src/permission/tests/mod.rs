//! Whole decisions: modes, rules, commands.

mod attacks;
mod commands;
mod modes;
mod rules;

use std::path::Path;

use ostler_proto::permission::PermissionMode;

use super::*;

/// A policy for a folder with rules like `deny Bash(rm:*)`.
fn policy(cwd: &Path, mode: PermissionMode, rules: &[&str]) -> Policy {
    let mut policy = Policy::new(cwd, mode);
    policy.home = Some("/h/user".into());
    policy.bypass_available = true;
    policy.trusts_project = true;
    for rule in rules {
        let (word, rule) = rule.split_once(' ').unwrap();
        let behavior = match word {
            "allow" => Behavior::Allow,
            "ask" => Behavior::Ask,
            _ => Behavior::Deny,
        };
        policy.add_rule(behavior, rule.parse().unwrap(), Source::Project);
    }
    policy
}

fn decide(policy: &Policy, tool: &str, words: &str) -> Decision {
    let input = input_of(tool, words);
    let effect = effect_of(tool, &input, &policy.cwd);
    policy.decide(&CallFacts { tool, input: &input, effect: &effect })
}

fn outcome(policy: &Policy, tool: &str, words: &str) -> String {
    decide(policy, tool, words).outcome.to_string()
}
