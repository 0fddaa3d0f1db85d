//! Decisions that depend on the environment in which a command would run.

use ostler_process::Environment;

use super::*;

fn with(cwd: &Path, variables: &[(&str, &str)], rules: &[&str]) -> Policy {
    let mut policy = policy(cwd, PermissionMode::Default, rules);
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut all = Environment { replaces: true, ..Environment::from([("PATH", "/usr/bin:/bin")]) };
    all.variables.extend(variables.iter().map(pair));
    policy.set_environment(&all);
    policy
}

// Seen to fail when `set_environment` does nothing.
#[test]
fn decisions_on_commands_depend_on_their_environment() {
    let cwd = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(cwd.path().join("bin")).unwrap();
    std::fs::write(cwd.path().join("bin/ls"), "").unwrap();
    let bin = format!("{}:/usr/bin", cwd.path().join("bin").display());
    for (variables, command, expected) in [
        (&[][..], "ls", "allow"),
        (&[("PATH", bin.as_str())], "ls", "ask"),
        (&[("PATH", &bin)], "cat a", "allow"),
        (&[("PATH", "")], "ls", "ask"),
        (&[("CDPATH", "/")], "cd etc && ls", "ask"),
        (&[("CDPATH", "/")], "cd ./etc && ls", "allow"),
        // Removed before the command runs.
        (&[("BASH_ENV", "/x")], "ls", "allow"),
        (&[("BASH_FUNC_ls%%", "() { x; }")], "ls", "allow"),
    ] {
        let decision = decide(&with(cwd.path(), variables, &[]), "Bash", command);
        assert_eq!(decision.outcome.to_string(), expected, "{variables:?} {command}");
        assert_eq!(decision.is_harmless, expected == "allow", "{variables:?} {command}");
    }
}

// Seen to fail when `parts` ignores the environment.
#[test]
fn if_a_rule_allows_a_part_the_whole_environment_must_be_harmless() {
    let cwd = tempfile::tempdir().unwrap();
    let rules = ["allow Bash(npm test:*)"];
    for (variables, command, expected) in [
        (&[][..], "ls && npm test", "allow"),
        (&[("LD_PRELOAD", "/x")], "ls && npm test", "ask"),
        (&[("RIPGREP_CONFIG_PATH", "/x")], "npm test | rg x", "ask"),
        (&[("TZ", ":/x")], "date; npm test", "ask"),
        (&[("LD_PRELOAD", "/x")], "npm test", "allow"),
        (&[("LD_PRELOAD", "/x")], "cd sub && npm test", "allow"),
    ] {
        let decision = decide(&with(cwd.path(), variables, &rules), "Bash", command);
        assert_eq!(decision.outcome.to_string(), expected, "{variables:?} {command}");
        assert!(!decision.is_harmless, "a rule allows {command}");
    }
    let everything = with(cwd.path(), &[], &["allow Bash"]);
    assert!(!decide(&everything, "Bash", "ls").is_harmless);
    let bypass = policy(cwd.path(), PermissionMode::BypassPermissions, &[]);
    assert!(!decide(&bypass, "Bash", "ls").is_harmless);
}
