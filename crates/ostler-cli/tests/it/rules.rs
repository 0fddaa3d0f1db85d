//! Settings decide what may run, and `explain` says why.

use std::fs;

use crate::run::Ostler;

fn with_settings(settings: &str) -> Ostler {
    let ostler = Ostler::new();
    fs::create_dir(ostler.path(".claude")).unwrap();
    fs::write(ostler.path(".claude/settings.json"), settings).unwrap();
    ostler
}

// Seen to fail when an untrusted project's settings are read completely.
#[test]
fn a_project_can_forbid_and_only_a_trusted_one_can_allow() {
    let ostler = with_settings(
        r#"{"permissions": {"deny": ["Bash(touch:*)"], "allow": ["Bash(mkdir:*)"]}}"#,
    );
    ostler.run(&["-p", "run `touch a.txt`"]);
    assert!(!ostler.path("a.txt").exists());
    ostler.run(&["--permission-mode", "bypassPermissions", "-p", "run `touch a.txt`"]);
    assert!(!ostler.path("a.txt").exists(), "a deny rule applies in every mode");
    ostler.run(&["-p", "run `mkdir made`"]);
    assert!(!ostler.path("made").exists(), "not trusted");
    ostler.run(&["--trust-project", "-p", "run `mkdir made`"]);
    assert!(ostler.path("made").exists());
}

// Mutant: the sandbox is a caution; a search is judged by its arguments.
#[test]
fn a_requested_sandbox_and_the_effect_of_a_search_are_not_ignored() {
    let missing = r#"{"sandbox": {"enabled": true, "bwrapPath": "/no/such/bwrap"}}"#;
    let ran = Ostler::new().run(&["--settings", missing, "-p", "run `touch a.txt`"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("failIfUnavailable"), "{}", ran.stderr);
    let of_project = with_settings(r#"{"sandbox": {"enabled": true}}"#);
    let ran = of_project.run(&["-p", "list the files", "--output-format", "json"]);
    assert!(ran.stdout.contains("\"sandbox\":{\"backend\""), "a project can ask for it: {ran:?}");
    let without = r#"{"sandbox": {"enabled": true, "failIfUnavailable": false, "bwrapPath": "/no/such/bwrap"}}"#;
    let ran = Ostler::new().run(&["--settings", without, "-p", "list the files"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("without the sandbox"), "{}", ran.stderr);
    let ran = Ostler::new().run(&["explain", "Glob", "/etc/*"]);
    assert!(ran.stdout.contains("/etc is outside"), "{}", ran.stdout);
}

#[test]
fn explain_prints_the_decision_and_every_step_and_runs_nothing() {
    let ostler = with_settings(r#"{"permissions": {"deny": ["Bash(rm:*)"]}}"#);
    let ran = ostler.run(&["explain", "Bash", "git status && rm -rf README.md"]);
    assert!(
        ran.stdout.to_lowercase().contains("den") && ran.stdout.contains("Bash(rm:*)"),
        "{}",
        ran.stdout
    );
    assert!(ostler.path("README.md").exists());
    let ran = ostler.run(&["explain", "Read", "README.md"]);
    assert!(ran.stdout.to_lowercase().contains("allow"), "{}", ran.stdout);
}

#[test]
fn explain_accepts_options_before_and_after_and_knows_its_tools() {
    let ostler = Ostler::new();
    for arguments in [
        &["--permission-mode", "plan", "explain", "Write", "x"][..],
        &["explain", "--permission-mode", "plan", "Write", "x"],
    ] {
        let ran = ostler.run(arguments);
        assert!(
            ran.stdout.contains("Write would be denied: plan mode"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
    let ran = ostler.run(&["explain", "Bash", "ls", "-la", "--all"]);
    assert!(
        ran.stdout.contains("allowed") && ran.stdout.contains("ls -la --all"),
        "{}",
        ran.stdout
    );
    for (arguments, expected) in [
        (&["explain", "bash", "ls"][..], "did you mean Bash?"),
        (&["explain", "Nope", "x"], "there are AskUserQuestion, Bash,"),
        (&["explain", "Bash"], "which command?"),
        (&["hello", "doctor"], "write `ostler doctor`"),
    ] {
        let ran = ostler.run(arguments);
        assert!(
            ran.stderr.contains(expected) && ran.code != Some(0),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn no_session_starts_with_invalid_settings() {
    for settings in
        ["{broken", r#"{"permissions": {"deny": ["Bash("]}}"#, r#"{"permissions": {"deny": 7}}"#]
    {
        let ran = with_settings(settings).run(&["-p", "list the files"]);
        assert_eq!(ran.code, Some(1), "{settings}: {}", ran.stdout);
        assert!(ran.stderr.contains("settings.json"), "{}", ran.stderr);
    }
}

#[test]
fn hooks_of_the_settings_run() {
    let guard = r#"{"hooks": {"PreToolUse": [{"matcher": "Read", "hooks":
        [{"type": "command", "command": "echo closed today >&2; exit 2"}]}]}}"#;
    let ran = Ostler::new().run(&["--settings", guard, "-p", "read README.md"]);
    assert!(ran.stdout.contains("closed today"), "{}", ran.stdout);
}

#[test]
fn a_private_file_that_comes_with_a_project_allows_nothing() {
    let ostler = with_settings("{}");
    let settings = r#"{"permissions": {"allow": ["Bash(mkdir:*)"], "defaultMode": "acceptEdits"}}"#;
    fs::write(ostler.path(".claude/settings.local.json"), settings).unwrap();
    // Rules that the user granted in another folder do not count here.
    let elsewhere = ostler.path("no-home/.claude/ostler/always/elsewhere/.claude");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("settings.local.json"), settings).unwrap();
    ostler.run(&["-p", "run `mkdir made`"]);
    ostler.run(&["-p", "write \"x\" to new.txt"]);
    assert!(!ostler.path("made").exists() && !ostler.path("new.txt").exists());

    // Rules that the user granted here count, and nothing else of the file.
    let here = ostler.folder.path().canonicalize().unwrap();
    let here = here.strip_prefix("/").unwrap();
    let memory = ostler.path("no-home/.claude/ostler/always").join(here).join(".claude");
    fs::create_dir_all(&memory).unwrap();
    let said = r#"{"permissions": {"allow": ["Bash(mkdir:*)", "Bash(touch:*)"]}}"#;
    fs::write(memory.join("settings.local.json"), said).unwrap();
    let ran = ostler.run(&["-p", "run `mkdir made`"]);
    assert!(ostler.path("made").exists(), "{}", ran.stdout);
    let file = "settings.local.json: the project is not trusted";
    assert!(ran.stderr.contains(file), "the mode is not confirmed: {}", ran.stderr);
    ostler.run(&["-p", "run `touch a`"]);
    ostler.run(&["-p", "write \"x\" to new.txt"]);
    assert!(!ostler.path("a").exists() && !ostler.path("new.txt").exists());
}

// Mutants: `preview` does not set the policy's sandbox; `explain` does not look at exclusions.
#[test]
fn explain_shows_the_sandbox_that_a_command_would_run_in() {
    let settings = r#"{"sandbox": {"enabled": true, "excludedCommands": ["docker"],
        "network": {"allowedDomains": []}, "filesystem": {"denyRead": ["/srv"]}}}"#;
    let ostler = Ostler::new();
    let explain = |settings: &str, command: &str| {
        let ran = ostler.run(&["explain", "--settings", settings, "Bash", command]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let text = explain(settings, "make all");
    let folder = ostler.folder.path().canonicalize().unwrap();
    for expected in [
        "Bash would be allowed: the command runs in the sandbox",
        "It would run in a sandbox (bubblewrap",
        &format!("can write: {}", folder.display()),
        ".git/hooks",
        "/srv",
        "network: its own loopback addresses",
        "\"processes\":1024",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let text = explain(settings, "docker ps");
    assert!(text.contains("outside the sandbox (sandbox.excludedCommands)"), "{text}");
    assert!(text.contains("Bash would be asked about"), "{text}");
    let missing = r#"{"sandbox": {"enabled": true, "bwrapPath": "/no/such/bwrap"}}"#;
    let text = explain(missing, "make all");
    assert!(text.contains("It would not run, because the sandbox cannot be started: "), "{text}");
    assert!(!explain("{}", "make all").contains("sandbox"));
}
