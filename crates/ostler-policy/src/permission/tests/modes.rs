//! Each mode against each kind of call.

use super::*;

const CALLS: &[(&str, &str)] = &[
    ("TodoWrite", ""),
    ("Read", "a"),
    ("Read", "/etc/passwd"),
    ("Write", "new/a"),
    ("Write", "/etc/passwd"),
    ("Write", ".git/hooks/x"),
    ("Bash", "ls"),
    ("Bash", "mkdir x"),
    ("Bash", "make"),
    ("AskUserQuestion", ""),
    ("WebFetch", "https://example.com"),
    ("mcp__s__t", ""),
    ("WebSearch", "words"),
    ("NotebookEdit", "a.ipynb"),
];

#[test]
fn each_mode_decides_on_each_kind_of_call() {
    let cwd = tempfile::tempdir().unwrap();
    for (mode, expected) in [
        (PermissionMode::Default, "allow allow ask ask ask ask allow ask ask ask ask ask ask ask"),
        (
            PermissionMode::AcceptEdits,
            "allow allow ask allow ask ask allow allow ask ask ask ask ask allow",
        ),
        (
            PermissionMode::Plan,
            "allow allow ask deny deny deny allow deny deny ask ask deny ask deny",
        ),
        (
            PermissionMode::DontAsk,
            "allow allow deny deny deny deny allow deny deny deny deny deny deny deny",
        ),
        (
            PermissionMode::BypassPermissions,
            "allow allow allow allow allow allow allow allow allow ask allow allow allow allow",
        ),
        (
            PermissionMode::Auto,
            "allow allow deny deny deny deny allow deny deny ask deny deny deny deny",
        ),
        (
            PermissionMode::Other("junk".into()),
            "allow allow deny deny deny deny allow deny deny ask deny deny deny deny",
        ),
    ] {
        let policy = policy(cwd.path(), mode.clone(), &[]);
        let words: Vec<_> =
            CALLS.iter().map(|(tool, words)| outcome(&policy, tool, words)).collect();
        assert_eq!(words.join(" "), expected, "{mode}");
    }
}

#[test]
fn bypass_permissions_that_is_not_available_means_the_default_mode() {
    let cwd = tempfile::tempdir().unwrap();
    let mut policy = policy(cwd.path(), PermissionMode::BypassPermissions, &[]);
    policy.bypass_available = false;
    let decision = decide(&policy, "Bash", "make");
    assert_eq!(decision.outcome, Outcome::Ask);
    assert!(decision.chain[0].to_string().contains("not available"), "{:?}", decision.chain);
}

#[test]
fn rules_that_narrow_hold_in_every_mode() {
    let cwd = tempfile::tempdir().unwrap();
    for mode in [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::BypassPermissions,
    ] {
        let policy = policy(
            cwd.path(),
            mode.clone(),
            &["allow Bash", "deny Bash(rm:*)", "deny Read(.env)", "ask WebFetch"],
        );
        assert_eq!(outcome(&policy, "Bash", "rm x"), "deny", "{mode}");
        assert_eq!(outcome(&policy, "Bash", "ls && rm x"), "deny", "{mode}");
        assert_eq!(outcome(&policy, "Read", ".env"), "deny", "{mode}");
        let asked = if mode == PermissionMode::DontAsk { "deny" } else { "ask" };
        assert_eq!(outcome(&policy, "WebFetch", "https://example.com"), asked, "{mode}");
    }
}

#[test]
fn additional_directories_are_working_directories() {
    let (cwd, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut policy = policy(cwd.path(), PermissionMode::AcceptEdits, &[]);
    let path = other.path().join("x").display().to_string();
    assert_eq!(outcome(&policy, "Write", &path), "ask");
    policy.add_directory(other.path(), Source::Session);
    assert_eq!(outcome(&policy, "Write", &path), "allow");
    assert_eq!(outcome(&policy, "Bash", &format!("touch {path}")), "allow");
}

#[test]
fn the_sessions_own_files_may_be_read_and_not_changed() {
    let (cwd, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut policy = policy(cwd.path(), PermissionMode::AcceptEdits, &[]);
    let path = scratch.path().join("x").display().to_string();
    assert_eq!(outcome(&policy, "Read", &path), "ask");
    policy.scratch = Some(scratch.path().to_owned());
    assert_eq!(outcome(&policy, "Read", &path), "allow");
    assert_eq!(outcome(&policy, "Bash", &format!("tail {path}")), "allow");
    assert_eq!(outcome(&policy, "Write", &path), "ask");
    assert_eq!(outcome(&policy, "Bash", &format!("rm {path}")), "ask");
    std::os::unix::fs::symlink("/etc/passwd", scratch.path().join("x")).unwrap();
    assert_eq!(outcome(&policy, "Read", &path), "ask");
}

#[test]
fn a_decision_has_every_step_and_suggestions() {
    let cwd = tempfile::tempdir().unwrap();
    let policy =
        policy(cwd.path(), PermissionMode::Default, &["deny Bash(rm:*)", "allow Bash(git status)"]);
    let decision = decide(&policy, "Bash", "git push origin main");
    let steps: Vec<_> = decision.chain.iter().map(ToString::to_string).collect();
    assert_eq!(
        steps,
        [
            "mode: default",
            "deny rule Bash(rm:*) from project settings: does not match",
            "part `git push origin main`: no rule allows it, and git push is not known to only read",
            "decision: ask: part `git push origin main`: no rule allows it, and git push is not known to only read",
        ]
    );
    let suggestions = serde_json::to_string(&decision.suggestions).unwrap();
    assert!(suggestions.contains(r#""ruleContent":"git push origin main""#), "{suggestions}");
    assert!(suggestions.contains(r#""ruleContent":"git push:*""#), "{suggestions}");
    let input = input_of("Bash", "git push && rm -rf x");
    let effect = effect_of("Bash", &input, cwd.path());
    let text = explain(&policy, &CallFacts { tool: "Bash", input: &input, effect: &effect });
    assert!(
        text.starts_with(
            "Bash would be denied: deny rule Bash(rm:*) from project settings forbids it"
        ),
        "{text}"
    );
    assert!(text.contains("no  part `git push`: no rule allows it, and"), "{text}");
}

#[test]
fn an_accepted_suggestion_makes_the_question_unnecessary() {
    let cwd = tempfile::tempdir().unwrap();
    for (tool, words) in [
        ("Bash", "make test"),
        ("Bash", "make; rm x"),
        ("Bash", "eval \"$X\""),
        ("Bash", "echo hi > f"),
        ("Write", "a"),
        ("Write", "/data/x/a"),
        ("Read", "/etc/hosts"),
        ("WebFetch", "https://docs.rs/x"),
        ("WebSearch", "words"),
        ("mcp__s__t", ""),
        ("Bash", "mkdir x"),
    ] {
        let before = policy(cwd.path(), PermissionMode::Default, &[]);
        let decision = decide(&before, tool, words);
        assert_eq!(decision.outcome, Outcome::Ask, "{tool} {words}");
        let mut after = before.clone();
        for update in &decision.suggestions {
            after.apply(update).unwrap();
        }
        assert_eq!(
            outcome(&after, tool, words),
            "allow",
            "{tool} {words}: {:?}",
            decision.suggestions
        );
    }
    for (tool, words) in [("AskUserQuestion", ""), ("Write", ".git/config")] {
        assert!(
            decide(&policy(cwd.path(), PermissionMode::Default, &[]), tool, words)
                .suggestions
                .is_empty()
        );
    }
}

#[test]
fn a_long_list_of_rules_is_cut_in_the_chain_and_still_active() {
    let cwd = tempfile::tempdir().unwrap();
    let rules: Vec<_> = (0..500).map(|n| format!("deny Bash(c{n}:*)")).collect();
    let rules: Vec<_> = rules.iter().map(String::as_str).collect();
    let policy = policy(cwd.path(), PermissionMode::BypassPermissions, &rules);
    let decision = decide(&policy, "Bash", "c499 x");
    assert_eq!(decision.outcome, Outcome::Deny);
    assert!(decision.chain.len() < 110);
}

#[test]
fn a_pinned_server_is_asked_about_in_every_mode() {
    let cwd = tempfile::tempdir().unwrap();
    let mut policy = policy(cwd.path(), PermissionMode::BypassPermissions, &[]);
    assert_eq!(outcome(&policy, "mcp__calc__add", ""), "allow");
    policy.pinned.insert("mcp__calc__".to_owned());
    assert_eq!(outcome(&policy, "mcp__calc__add", ""), "ask");
    assert_eq!(outcome(&policy, "mcp__other__add", ""), "allow");
    policy.mode = PermissionMode::DontAsk;
    assert_eq!(outcome(&policy, "mcp__calc__add", ""), "deny", "pinning allows nothing more");
}
