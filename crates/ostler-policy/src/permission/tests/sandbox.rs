//! Decisions on commands that run in a sandbox.

use super::*;

fn sandboxed(cwd: &Path, mode: PermissionMode, rules: &[&str]) -> Policy {
    let mut policy = policy(cwd, mode, rules);
    let excluded = vec![SandboxPolicy::exclusion("docker"), SandboxPolicy::exclusion("npm run *")];
    policy.sandbox = Some(SandboxPolicy { allows_commands: true, excluded });
    policy
}

fn outside(command: &str) -> String {
    json!({"command": command, "dangerouslyDisableSandbox": true}).to_string()
}

// Mutants: `is_inside_sandbox` ignores exclusions, the request to leave, or both; `sandbox_allows` ignores plan mode.
#[test]
fn commands_inside_need_no_approval_and_those_outside_do() {
    let cwd = tempfile::tempdir().unwrap();
    let table = [
        ("python3 -c 'print(1)'", "allow"),
        ("for i in 1 2; do make $i; done", "allow"),
        ("docker ps", "ask"),
        ("docker ps; make", "allow"),
        ("docker $(make)", "allow"),
    ];
    for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
        let policy = sandboxed(cwd.path(), mode.clone(), &[]);
        for (command, expected) in table {
            assert_eq!(outcome(&policy, "Bash", command), expected, "{mode} {command}");
        }
        assert_eq!(outcome(&policy, "Bash", &outside("make")), "ask");
        assert_eq!(outcome(&policy, "Write", "/elsewhere"), "ask", "only commands are inside");
    }
    let policy = sandboxed(cwd.path(), PermissionMode::DontAsk, &[]);
    assert_eq!(outcome(&policy, "Bash", "make all"), "allow");
    assert_eq!(outcome(&policy, "Bash", "docker ps"), "deny");
    let policy = sandboxed(cwd.path(), PermissionMode::Plan, &[]);
    assert_ne!(outcome(&policy, "Bash", "make all"), "allow", "plan mode changes nothing");
    let mut policy = sandboxed(cwd.path(), PermissionMode::Default, &[]);
    policy.sandbox.as_mut().unwrap().allows_commands = false;
    assert_eq!(outcome(&policy, "Bash", "make all"), "ask");
}

// Mutants: `is_enforced_by_sandbox` always says yes; rules that ask are not asked first.
#[test]
fn rules_hold_inside_unless_the_sandbox_enforces_them_itself() {
    let cwd = tempfile::tempdir().unwrap();
    let with = |rule: &str| sandboxed(cwd.path(), PermissionMode::Default, &[rule]);
    let unclear = "python3 $(find . -name '*.py')";
    for (rule, command, expected) in [
        ("deny Bash(rm:*)", "rm x", "deny"),
        ("deny Bash(rm:*)", "$(echo rm) x", "ask"),
        ("ask Bash(git push:*)", "git push", "ask"),
        // The system hides or protects these paths.
        ("deny Read(./.env)", unclear, "allow"),
        ("deny Read(//etc/secret/**)", unclear, "allow"),
        ("deny Edit(~/notes/**)", unclear, "allow"),
        ("deny Read(./.env)", "cat .env", "deny"),
        // It cannot do that for patterns.
        ("deny Read(**/*.pem)", unclear, "ask"),
        ("deny Read(.env)", unclear, "ask"),
    ] {
        assert_eq!(outcome(&with(rule), "Bash", command), expected, "{rule}: {command}");
    }
}

#[test]
fn denied_paths_are_those_of_rules_without_wildcards() {
    let rules = [
        "deny Read(./a/**)",
        "deny Read(//b/c)",
        "deny Read(~/d)",
        "deny Edit(/e)",
        "deny Write(./f/)",
        "deny Read(**/g)",
        "deny Read(h)",
        "deny Read",
        "ask Read(./i)",
        "allow Read(./j)",
    ];
    let policy = sandboxed(Path::new("/w"), PermissionMode::Default, &rules);
    let denied = policy.denied_paths();
    let paths = |list: &[&str]| list.iter().map(std::path::PathBuf::from).collect::<Vec<_>>();
    assert_eq!(denied.read, paths(&["/w/a", "/b/c", "/h/user/d"]));
    assert_eq!(denied.write, paths(&["/w/e", "/w/f/"]));
}

// Mutants: `bypassPermissions` allows; rules without a domain count; the order of deny and allow.
#[test]
fn hosts_of_commands_are_decided_by_rules_with_a_domain_and_no_mode_allows_them() {
    use PermissionMode::{AcceptEdits, Auto, BypassPermissions, Default, DontAsk, Plan};
    let host = "api.example.com";
    let cases: &[(PermissionMode, &[&str], &str)] = &[
        (Default, &[], "ask"),
        (AcceptEdits, &[], "ask"),
        (Plan, &[], "ask"),
        (BypassPermissions, &[], "deny"),
        (DontAsk, &[], "deny"),
        (Auto, &[], "deny"),
        (BypassPermissions, &["allow WebFetch(domain:example.com)"], "allow"),
        (Default, &["allow WebFetch(domain:*.example.com)"], "allow"),
        (Default, &["allow WebFetch(domain:ample.com)"], "ask"),
        (Default, &["allow WebFetch(domain:api.example.com.evil.org)"], "ask"),
        // The whole tool is something else.
        (Default, &["allow WebFetch"], "ask"),
        (Default, &["deny WebFetch"], "ask"),
        (BypassPermissions, &["allow WebFetch"], "deny"),
        (
            Default,
            &["allow WebFetch(domain:example.com)", "deny WebFetch(domain:api.example.com)"],
            "deny",
        ),
        (
            Default,
            &["allow WebFetch(domain:example.com)", "ask WebFetch(domain:api.example.com)"],
            "ask",
        ),
    ];
    for (mode, rules, expected) in cases {
        let policy = sandboxed(Path::new("/w"), mode.clone(), rules);
        let decision = policy.decide_host(host);
        assert_eq!(decision.outcome.to_string(), *expected, "{mode} {rules:?}");
    }
    let decision = sandboxed(Path::new("/w"), Default, &[]).decide_host(host);
    let suggested = serde_json::to_value(&decision.suggestions).unwrap();
    let rule =
        serde_json::json!([{"toolName": "WebFetch", "ruleContent": "domain:api.example.com"}]);
    assert_eq!(suggested[0]["rules"], rule);
}
