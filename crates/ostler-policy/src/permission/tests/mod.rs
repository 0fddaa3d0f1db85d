//! Whole decisions: modes, rules, commands.

mod attacks;
mod commands;
mod environment;
mod grants;
mod modes;
mod rules;
mod sandbox;

use std::path::Path;

use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

use super::*;
use crate::permission::{Effect, ServerToolPolicy};

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

/// The arguments of a call, from the one that matters or as JSON.
fn input_of(tool: &str, words: &str) -> Value {
    if let Ok(Value::Object(object)) = serde_json::from_str(words) {
        return Value::Object(object);
    }
    match tool {
        "Bash" => json!({ "command": words }),
        "Read" | "Write" | "Edit" => json!({ "file_path": words }),
        "NotebookEdit" => json!({ "notebook_path": words }),
        "WebFetch" => json!({ "url": words }),
        "WebSearch" => json!({ "query": words }),
        "Agent" | "Task" => json!({ "subagent_type": words }),
        "Skill" => json!({ "skill": words }),
        _ => json!({ "path": words }),
    }
}

/// The effect that the tool of this name would have. The tools themselves are in another crate.
fn effect_of(tool: &str, input: &Value, cwd: &Path) -> Effect {
    let text = |field: &str| input.get(field).and_then(Value::as_str).unwrap_or_default();
    match tool {
        "Bash" => Effect::Execute(text("command").to_owned()),
        "Read" => Effect::Read(cwd.join(text("file_path"))),
        "Glob" | "Grep" => Effect::Read(cwd.join(text("path"))),
        "Write" | "Edit" => Effect::Write(cwd.join(text("file_path"))),
        "NotebookEdit" => Effect::Write(cwd.join(text("notebook_path"))),
        "WebFetch" => Effect::Fetch(text("url").to_owned()),
        "WebSearch" => Effect::Search(text("query").to_owned()),
        "AskUserQuestion" => Effect::AskUser,
        tool if tool.starts_with("mcp__") => {
            Effect::Outside { changes: true, policy: ServerToolPolicy::Unset }
        }
        _ => Effect::Nothing,
    }
}
