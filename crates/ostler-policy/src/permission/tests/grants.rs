//! What rules can allow, and which rules are suggested.

use std::fs;

use ostler_proto::control::DecisionReasonType as Kind;

use super::*;

const MODES: [PermissionMode; 4] = [
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::DontAsk,
    PermissionMode::Plan,
];

fn bash(command: &str) -> String {
    json!({"command": command, "dangerouslyDisableSandbox": true}).to_string()
}

// Mutant: allow rules before the checks that no rule answers; `protected` that looks at edits only.
#[test]
fn no_rule_overrides_protected_paths_ask_rules_safety_checks_or_the_sandbox() {
    let cwd = tempfile::tempdir().unwrap();
    let rules = [
        "allow Bash",
        "allow Write",
        "allow Edit",
        "allow Edit(**)",
        "allow Bash(touch:*)",
        "allow Bash(rm:*)",
        "allow Bash(git push:*)",
        "ask Bash(git push:*)",
    ];
    for (tool, words, kind) in [
        ("Write", ".git/hooks/x".to_owned(), Kind::SafetyCheck),
        ("Write", "/h/user/.bashrc".to_owned(), Kind::SafetyCheck),
        ("Bash", "touch .git/hooks/x".to_owned(), Kind::SafetyCheck),
        ("Bash", "echo x > .claude/settings.json".to_owned(), Kind::SafetyCheck),
        ("Bash", "rm -rf /".to_owned(), Kind::SafetyCheck),
        ("Bash", "git push".to_owned(), Kind::Rule),
        ("Bash", bash("make"), Kind::SandboxOverride),
    ] {
        for mode in MODES {
            let policy = policy(cwd.path(), mode.clone(), &rules);
            let decision = decide(&policy, tool, &words);
            let expected = match (&mode, &kind) {
                (PermissionMode::DontAsk, _) => Outcome::Deny,
                (PermissionMode::Plan, kind) if *kind != Kind::Rule => Outcome::Deny,
                _ => Outcome::Ask,
            };
            assert_eq!(decision.outcome, expected, "{mode}: {tool} {words}: {:#?}", decision.chain);
            if expected == Outcome::Ask {
                assert_eq!(decision.reason_type, kind, "{mode}: {tool} {words}");
                assert!(decision.suggestions.is_empty(), "{tool} {words}");
                assert!(!decision.can_be_granted());
            }
        }
    }
}

// Mutant: the checks for the sandbox stand behind bypassPermissions.
#[test]
fn leaving_the_sandbox_requires_approval_even_in_bypass_mode() {
    let cwd = tempfile::tempdir().unwrap();
    let mut policy = policy(cwd.path(), PermissionMode::BypassPermissions, &["allow Bash"]);
    assert_eq!(outcome(&policy, "Bash", "make"), "allow");
    assert_eq!(outcome(&policy, "Bash", &bash("make")), "ask");
    policy.unsandboxed_forbidden = true;
    assert_eq!(outcome(&policy, "Bash", "make"), "allow");
    let decision = decide(&policy, "Bash", &bash("make"));
    assert_eq!(decision.outcome, Outcome::Deny);
    assert!(decision.reason.contains("allowUnsandboxedCommands"), "{}", decision.reason);
}

// A rule that names a protected path allows changing it: the user wrote the name.
#[test]
fn a_rule_that_names_a_protected_path_allows_changing_it() {
    let cwd = tempfile::tempdir().unwrap();
    let rules = ["allow Edit(.git/info/**)", "allow Bash(touch .git/info/x)"];
    let policy = policy(cwd.path(), PermissionMode::Default, &rules);
    for (tool, words, expected) in [
        ("Write", ".git/info/x", "allow"),
        ("Write", ".git/hooks/x", "ask"),
        ("Bash", "touch .git/info/x", "allow"),
        ("Bash", "touch .git/hooks/x", "ask"),
        ("Bash", "echo x > .git/info/x", "allow"),
    ] {
        assert_eq!(outcome(&policy, tool, words), expected, "{tool} {words}");
    }
}

fn suggested(policy: &Policy, tool: &str, words: &str) -> String {
    serde_json::to_string(&decide(policy, tool, words).suggestions).unwrap()
}

// Mutant: the whole tool is suggested where nothing narrower is known.
#[test]
fn for_an_edit_the_folder_is_suggested_and_never_the_whole_tool() {
    let cwd = tempfile::tempdir().unwrap();
    let folder = cwd.path().canonicalize().unwrap();
    let policy = policy(&folder, PermissionMode::Default, &[]);
    fs::create_dir_all(folder.join("sub")).unwrap();
    let rule = |name: &str| format!("\"ruleContent\":\"/{}/{name}**\"", folder.display());
    let inside = suggested(&policy, "Write", "sub/a");
    assert!(inside.contains(&rule("sub/")) && inside.contains("\"Edit\""), "{inside}");
    assert!(suggested(&policy, "Write", "a").contains(&rule("")));
    for (tool, words) in [
        ("Write", "sub/a"),
        ("Write", "a"),
        ("Write", "/x"),
        ("Write", "/h/user/x"),
        ("Write", "/data/[a]/x"),
        ("NotebookEdit", "a.ipynb"),
        ("Read", "/x"),
        ("Bash", "make"),
        ("WebFetch", "https://docs.rs"),
        ("WebFetch", "nonsense"),
    ] {
        for update in &decide(&policy, tool, words).suggestions {
            let update = serde_json::to_value(update).unwrap();
            for rule in update["rules"].as_array().into_iter().flatten() {
                let content = rule["ruleContent"].as_str();
                let is_narrow = content.is_some_and(|it| !it.trim_matches(['/', '*']).is_empty());
                assert!(is_narrow, "{tool} {words}: {rule}");
            }
        }
    }
    // The narrow rule is enough for the folder, and for nothing else.
    let mut after = policy.clone();
    after.apply(&decide(&policy, "Write", "sub/a").suggestions[0]).unwrap();
    assert_eq!(outcome(&after, "Write", "sub/b"), "allow");
    assert_eq!(outcome(&after, "Write", "b"), "ask");
    assert_eq!(outcome(&after, "Write", "sub/.git/config"), "ask");
}

// Mutant: the policy of the server is looked at after the mode, or after the allow rules.
#[test]
fn the_policy_of_a_server_is_stronger_than_mode_and_rules() {
    use ServerToolPolicy::{AlwaysAllow, AlwaysAsk, AlwaysDeny, Unset};
    let cwd = tempfile::tempdir().unwrap();
    let decide = |mode: PermissionMode, rules: &[&str], of_server, changes| {
        let policy = policy(cwd.path(), mode, rules);
        let effect = Effect::Outside { changes, policy: of_server };
        let call = CallFacts { tool: "mcp__x__y", input: &json!({}), effect: &effect };
        policy.decide(&call).outcome.to_string()
    };
    use PermissionMode::{BypassPermissions, Default, DontAsk, Plan};
    let allow = &["allow mcp__x__y"][..];
    for (mode, rules, of_server, changes, expected) in [
        (BypassPermissions, allow, AlwaysDeny, true, "deny"),
        (BypassPermissions, allow, AlwaysAsk, true, "ask"),
        (BypassPermissions, &["deny mcp__x"], AlwaysAllow, true, "deny"),
        (BypassPermissions, &["ask mcp__x"], AlwaysAllow, true, "ask"),
        (Default, allow, AlwaysAsk, true, "ask"),
        (Default, &[], AlwaysAllow, true, "allow"),
        (DontAsk, &[], AlwaysAllow, true, "allow"),
        (DontAsk, allow, AlwaysAsk, true, "deny"),
        (Plan, allow, AlwaysAllow, true, "deny"),
        (Plan, allow, Unset, false, "allow"),
        (Plan, &[], Unset, false, "ask"),
    ] {
        let really = decide(mode.clone(), rules, of_server, changes);
        assert_eq!(really, expected, "{mode} {rules:?} {of_server:?}");
    }
}
