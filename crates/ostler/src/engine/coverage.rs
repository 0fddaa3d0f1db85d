//! Whether rules that a user granted allow a call. The engine's own [`Policy`] decides, so a host that stores granted
//! rules (the server) cannot come to another decision than the engine.

use std::path::PathBuf;

use ostler_engine::permission::{
    self, Behavior, CallFacts, Decision, Outcome, Policy, Rule, Source,
};
use ostler_engine::sandbox::NETWORK_TOOL;
use ostler_proto::control::DecisionReasonType;
use ostler_proto::permission::{PermissionMode, PermissionRule};
use ostler_sdk::options::Environment;
use serde_json::Value;

use super::judge::effect_of;
use super::rules::canonical;

/// Where a call would run.
#[derive(Clone, Debug, Default)]
pub struct CallPlace {
    /// The working directory of the session.
    pub cwd: PathBuf,
    /// Other working directories.
    pub directories: Vec<PathBuf>,
    /// The home directory, for `~/` and for the protected files in it.
    pub home: Option<PathBuf>,
    /// Repositories in which `git` commands that only read need no approval.
    pub trusted_repositories: Vec<PathBuf>,
    /// The environment of commands.
    pub env: Environment,
}

/// Whether these rules, and nothing else, allow a call that requires approval without them.
///
/// `false` in every unclear case: a rule is not valid; the call would be allowed without the rules, so it requires
/// approval for a reason that rules cannot change; or the decision does not come from an allow rule.
pub fn covers(place: &CallPlace, rules: &[PermissionRule], tool: &str, input: &Value) -> bool {
    let Ok(rules) = rules.iter().map(Rule::from_wire).collect::<Result<Vec<_>, _>>() else {
        return false;
    };
    if decide(place, &[], tool, input).outcome != Outcome::Ask {
        return false;
    }
    let decision = decide(place, &rules, tool, input);
    let by_rule = matches!(
        decision.reason_type,
        DecisionReasonType::Rule | DecisionReasonType::SubcommandResults
    );
    decision.outcome == Outcome::Allow && by_rule
}

/// Whether a rule denies a call. `false` if that is unclear; such a call requires approval in every mode.
pub fn denies(place: &CallPlace, rule: &PermissionRule, tool: &str, input: &Value) -> bool {
    let Ok(rule) = Rule::from_wire(rule) else { return true };
    judge(place, Behavior::Deny, &[rule], tool, input).outcome == Outcome::Deny
}

/// Whether a name in a list stands for this tool of an MCP server: `mcp__server__tool`, `mcp__server`, `mcp__server__get_*`.
pub fn names_server_tool(listed: &str, tool: &str) -> bool {
    permission::names_server_tool(listed, tool)
}

/// Whether a call runs without approval in the default mode and without any rules.
pub fn needs_no_approval(place: &CallPlace, tool: &str, input: &Value) -> bool {
    decide(place, &[], tool, input).outcome == Outcome::Allow
}

/// Whether a rule allows every use of its tool: it has no content, or content that matches everything (`Read(//**)`).
/// `true` for a rule that is not valid.
pub fn is_whole_tool(rule: &PermissionRule) -> bool {
    let Ok(rule) = Rule::from_wire(rule) else { return true };
    let leaves_out = |content: &str| content.contains(|c: char| !"/*:.~ ".contains(c));
    !rule.content.as_deref().is_some_and(leaves_out)
}

/// Parses a rule like `Bash(npm test:*)`; `None` if it is not valid.
pub fn parse(text: &str) -> Option<PermissionRule> {
    Some(text.parse::<Rule>().ok()?.to_wire())
}

fn decide(place: &CallPlace, rules: &[Rule], tool: &str, input: &Value) -> Decision {
    judge(place, Behavior::Allow, rules, tool, input)
}

fn judge(
    place: &CallPlace,
    behavior: Behavior,
    rules: &[Rule],
    tool: &str,
    input: &Value,
) -> Decision {
    let mut policy = Policy::new(&place.cwd, PermissionMode::Default);
    policy.home.clone_from(&place.home);
    policy.trusted_repositories = canonical(&place.trusted_repositories);
    policy.set_environment(&place.env);
    for folder in &place.directories {
        policy.add_directory(folder, Source::Session);
    }
    for rule in rules {
        policy.add_rule(behavior, rule.clone(), Source::Session);
    }
    if tool == NETWORK_TOOL {
        // Without a host nothing is decided: it requires approval, and no rule covers it.
        return policy.decide_host(input.get("host").and_then(Value::as_str).unwrap_or_default());
    }
    let effect = effect_of(tool, input, &place.cwd);
    policy.decide(&CallFacts { tool, input, effect: &effect })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn covered(rules: &[&str], tool: &str, input: &Value) -> bool {
        let place = CallPlace { cwd: "/nowhere/project".into(), ..CallPlace::default() };
        let rules: Vec<_> = rules.iter().map(|rule| parse(rule).unwrap()).collect();
        covers(&place, &rules, tool, input)
    }

    // Mutant: `covers` that takes any allowed decision, also one for which no rule was needed.
    #[test]
    fn a_rule_covers_what_the_engine_would_allow_by_it_and_nothing_else() {
        let run = |command: &str| json!({"command": command});
        for (rules, command, expected) in [
            (&["Bash(touch:*)"][..], "touch a", true),
            (&["Bash(touch:*)"], "touch a; rm -r b", false),
            (&["Bash(touch:*)"], "touch a\nrm -r b", false),
            (&["Bash(touch:*)"], "touch a > /etc/x", false),
            (&["Bash(touch:*)", "Bash(make:*)"], "touch a && make b", true),
            (&["Bash(tou:*)"], "touch a", false),
            (&["Read"], "touch a", false),
            (&["Bash(touch:*)"], "ls", false),
            (&[], "touch a", false),
        ] {
            assert_eq!(covered(rules, "Bash", &run(command)), expected, "{rules:?} for {command}");
        }
        let write = |path: &str| json!({"file_path": path, "content": "x"});
        let folder = &["Edit(//nowhere/project/src/**)"];
        assert!(covered(folder, "Write", &write("/nowhere/project/src/a")));
        for outside in
            ["/nowhere/project/a", "/nowhere/project/src/../a", "/nowhere/project/src/.git/a"]
        {
            assert!(!covered(folder, "Write", &write(outside)), "{outside}");
        }
        assert!(covered(&["mcp__x__y"], "mcp__x__y", &json!({})));
        assert!(!covered(&["mcp__x__y"], "mcp__x__z", &json!({})));
    }

    #[test]
    fn a_rule_about_a_domain_covers_a_question_about_its_hosts() {
        let host = |name: &str| json!({"host": name});
        let rule = &["WebFetch(domain:example.com)"];
        assert!(covered(rule, NETWORK_TOOL, &host("example.com")));
        for other in ["example.org", "example.com.evil.org", "notexample.com", ""] {
            assert!(!covered(rule, NETWORK_TOOL, &host(other)), "{other}");
        }
        assert!(!covered(&["WebFetch"], NETWORK_TOOL, &host("example.com")));
        assert!(!covered(&[NETWORK_TOOL], NETWORK_TOOL, &host("example.com")));
        let place = CallPlace { cwd: "/nowhere/project".into(), ..CallPlace::default() };
        let rule = parse(rule[0]).unwrap();
        assert!(denies(&place, &rule, NETWORK_TOOL, &host("example.com")));
        assert!(!denies(&place, &rule, NETWORK_TOOL, &host("example.org")));
    }

    // Seen to fail with `denies` that asks whether the rule would allow the call.
    #[test]
    fn a_rule_denies_every_command_that_clearly_matches_it() {
        let place = CallPlace { cwd: "/nowhere/project".into(), ..CallPlace::default() };
        for (rule, command, expected) in [
            ("Bash(touch:*)", "touch a", true),
            ("Bash(touch:*)", "ls; env touch a", true),
            ("Bash(touch:*)", "x=touch; $x a", false),
            ("Bash(touch:*)", "mkdir a", false),
            ("Bash", "ls", true),
            ("WebFetch", "touch a", false),
        ] {
            let input = json!({"command": command});
            let rule = parse(rule).unwrap();
            assert_eq!(denies(&place, &rule, "Bash", &input), expected, "{command}");
        }
    }

    #[test]
    fn a_rule_whose_content_matches_everything_counts_as_a_rule_for_the_whole_tool() {
        let whole = |text: &str| is_whole_tool(&parse(text).unwrap());
        for rule in ["Bash", "Bash(*)", "Read(//**)", "Edit(/**)", "Bash(:*)", "mcp__x__y"] {
            assert!(whole(rule), "{rule}");
        }
        for rule in ["Bash(git:*)", "Read(//srv/**)", "WebFetch(domain:example.com)"] {
            assert!(!whole(rule), "{rule}");
        }
        let odd = PermissionRule { tool_name: "(".into(), ..PermissionRule::default() };
        assert!(is_whole_tool(&odd));
    }
}
