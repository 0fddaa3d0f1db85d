//! Commands are allowed only when all their parts are.

use proptest::prelude::*;

use super::*;
use crate::permission::Effect;

// Mutant: `OnDisk::look` without `access`: a file that was not looked at counts as looked at.
#[test]
fn a_decision_without_the_disk_is_the_same_as_one_with_it() {
    let cwd = tempfile::tempdir().unwrap();
    std::fs::write(cwd.path().join("x"), "").unwrap();
    let rules = [
        &["allow Bash(npm test:*)", "allow Bash(echo:*)"][..],
        &["allow Bash(npm test:*)", "deny Read(x)"],
        &["ask Bash(npm:*)", "allow Read(**)"],
    ];
    let mut without = Vec::new();
    for (rules, mode) in rules.iter().flat_map(|rules| {
        [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan]
            .map(|mode| (*rules, mode))
    }) {
        let policy = policy(cwd.path(), mode.clone(), rules);
        for command in [
            "npm test --all",
            "echo a && npm test",
            "echo a > x",
            "echo $(cat x)",
            "cat x",
            "ls *",
            "git status",
            "cd sub && ls",
            "touch x",
            "rm -rf sub",
            "sed -n 1p x",
            "unknown x",
        ] {
            let (input, effect) = (input_of("Bash", command), Effect::Execute(command.to_owned()));
            let facts = CallFacts { tool: "Bash", input: &input, effect: &effect };
            let decided = policy.without_disk(&facts, Policy::decide);
            if let Some(decision) = decided {
                assert_eq!(decision, policy.decide(&facts), "{command} {rules:?} {mode}");
                without.push((command, mode.clone()));
            }
            let asks = policy.without_disk(&facts, Policy::would_ask_by_default);
            assert!(
                asks.is_none_or(|asks| asks == policy.would_ask_by_default(&facts)),
                "{command}"
            );
        }
    }
    assert!(without.contains(&("npm test --all", PermissionMode::Default)), "a rule is enough");
    assert!(!without.iter().any(|(command, _)| *command == "ls *"), "{without:?}");
}

#[test]
fn accept_edits_covers_simple_changes_inside_only() {
    let cwd = tempfile::tempdir().unwrap();
    let policy = policy(cwd.path(), PermissionMode::AcceptEdits, &[]);
    // The fuzzer found that `rm -rf embedded` was allowed.
    std::fs::create_dir_all(cwd.path().join("embedded/.git/refs")).unwrap();
    std::fs::create_dir_all(cwd.path().join("other/src")).unwrap();
    for (command, expected) in [
        ("mkdir -p a/b", "allow"),
        ("touch a && rm a", "allow"),
        ("mv a b", "allow"),
        ("cp a b", "allow"),
        ("rm -rf sub", "allow"),
        ("rm -rf .", "ask"),
        ("rm -rf ..", "ask"),
        ("rm -rf /", "ask"),
        ("rm -rf ~", "ask"),
        ("rm -rf $X", "ask"),
        ("rm -rf *", "ask"),
        ("mv . x", "ask"),
        ("mv a .git", "ask"),
        ("mv x/.claude .", "ask"),
        ("rm -rf embedded", "ask"),
        ("mv embedded b", "ask"),
        ("rm -rf other", "allow"),
        ("cp -r a b", "ask"),
        ("cp /etc/passwd a", "ask"),
        ("cp a /tmp/b", "ask"),
        ("mv -t /tmp a", "ask"),
        ("echo hi > a", "ask"),
        ("echo hi >> a", "ask"),
        ("cat < a > b", "ask"),
        ("touch a && ls > b", "ask"),
        ("touch a > /dev/null 2>&1", "allow"),
        ("echo hi > .git/hooks/x", "ask"),
        ("echo hi > ~/.bashrc", "ask"),
        ("echo hi > .bashrc", "ask"),
        ("cd .claude && echo x > settings.json", "ask"),
        ("cd sub && touch x", "allow"),
        ("cd .. && touch x", "ask"),
        ("cd .git\ntouch hooks/x", "ask"),
        ("ln -s / x", "ask"),
        ("sed -i s/a/b/ x", "ask"),
        ("LD_PRELOAD=x touch a", "ask"),
        ("touch a; make", "ask"),
    ] {
        let decision = decide(&policy, "Bash", command);
        assert_eq!(decision.outcome.to_string(), expected, "{command}: {:#?}", decision.chain);
    }
}

// The literal grammar has redirections to `/dev/null` and between descriptors only. Seen to fail if acceptEdits allows
// `echo hi > a`.
#[test]
fn only_a_rule_lets_the_shell_open_a_file() {
    let cwd = tempfile::tempdir().unwrap();
    let modes = ["default", "acceptEdits", "plan", "dontAsk"];
    for mode in modes {
        let mode: PermissionMode = serde_json::from_value(json!(mode)).unwrap();
        let plain = policy(cwd.path(), mode.clone(), &[]);
        for command in
            ["echo hi > a", "cat b >> a", "ls 2> a", "ls | sort > a", "cd sub && ls > a", "cat < a"]
        {
            assert_ne!(outcome(&plain, "Bash", command), "allow", "{command} in {mode}");
        }
        for command in ["ls > /dev/null", "ls 2>&1", "ls 2>/dev/null | sort", "cat < /dev/null"] {
            assert_eq!(outcome(&plain, "Bash", command), "allow", "{command} in {mode}");
        }
        // The rule for the program is not one for the file.
        let echo = policy(cwd.path(), mode.clone(), &["allow Bash(echo:*)"]);
        assert_ne!(outcome(&echo, "Bash", "echo hi > a"), "allow", "{mode}");
        let read = policy(cwd.path(), mode.clone(), &["allow Read(in/**)"]);
        assert_eq!(outcome(&read, "Bash", "cat < in/a"), "allow", "{mode}");
        assert_ne!(outcome(&read, "Bash", "cat < a"), "allow", "{mode}");
        let file = policy(cwd.path(), mode.clone(), &["allow Edit(out/**)"]);
        let expected = if mode == PermissionMode::Plan { "deny" } else { "allow" };
        assert_eq!(outcome(&file, "Bash", "echo hi > out/a"), expected, "{mode}");
        assert_ne!(outcome(&file, "Bash", "echo hi > a"), "allow", "{mode}");
    }
}

#[test]
fn reading_inside_the_working_directories_needs_no_approval() {
    let cwd = tempfile::tempdir().unwrap();
    let policy = policy(cwd.path(), PermissionMode::Default, &[]);
    for (command, expected) in [
        ("ls -la", "allow"),
        ("cat a | grep b | wc -l", "allow"),
        ("cd sub && ls", "allow"),
        ("cd sub && cat a", "allow"),
        ("cd sub && cat ../../a", "ask"),
        ("cd / && ls", "ask"),
        ("cat /etc/passwd", "ask"),
        ("cat ../x", "ask"),
        ("cat ~/.ssh/id_rsa", "ask"),
        ("grep root /etc/passwd", "ask"),
        ("rg -e root /etc/passwd", "ask"),
        ("rg -eroot /etc/passwd", "ask"),
        ("find / -name x", "ask"),
        ("git diff /etc/passwd /etc/shadow", "ask"),
        ("ls $(cat /etc/passwd)", "ask"),
        ("cat < /etc/passwd", "ask"),
        ("cat < /dev/tcp/example.com/80", "ask"),
        ("echo hi > /dev/tcp/example.com/80", "ask"),
        ("ls > /dev/null 2>&1", "allow"),
        ("cat */x", "allow"),
        ("", "allow"),
    ] {
        let decision = decide(&policy, "Bash", command);
        assert_eq!(decision.outcome.to_string(), expected, "{command}: {:#?}", decision.chain);
    }
}

/// The decision on a command in a folder to which an earlier command changed.
fn decide_in(policy: &Policy, folder: &Path, command: &str) -> Decision {
    let input = input_of("Bash", command);
    let effect = Effect::ExecuteIn { folder: folder.to_owned(), command: command.to_owned() };
    policy.decide(&CallFacts { tool: "Bash", input: &input, effect: &effect })
}

// Seen to fail when paths are resolved from the session's folder.
#[test]
fn relative_paths_are_resolved_from_the_shells_folder() {
    let cwd = tempfile::tempdir().unwrap();
    let sub = cwd.path().join("sub");
    std::fs::create_dir_all(sub.join(".git")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), cwd.path().join("link")).unwrap();
    let rules = [
        "allow Bash(cargo test)",
        "allow Bash(make:*)",
        "deny Read(sub/secret)",
        "deny Edit(sub/kept)",
    ];
    let policy = policy(cwd.path(), PermissionMode::AcceptEdits, &rules);
    for (folder, command, expected) in [
        (sub.as_path(), "cat a", "allow"),
        (&sub, "ls", "allow"),
        (&sub, "cat ../a", "allow"),
        (&sub, "touch x", "allow"),
        (&sub, "cat < x", "ask"),
        (&sub, "echo hi > x", "ask"),
        (&sub, "cargo test", "allow"),
        (&sub, "make all", "allow"),
        (&sub, "cat ../../a", "ask"),
        (&sub, "touch ../../x", "ask"),
        (&sub, "echo hi > ../../x", "ask"),
        (&sub, "cat < ../../x", "ask"),
        (&sub, "cat ../link/x", "ask"),
        (&sub, "touch .git/hooks/x", "ask"),
        (&sub, "rm -rf ..", "ask"),
        (&sub, "cat secret", "deny"),
        (&sub, "touch kept", "deny"),
        // Relative paths are resolved from every folder that the shell can be in.
        (&sub, "cd .. && cat a", "allow"),
        (&sub, "cd .. && cat ../a", "ask"),
        (&sub, "cd ../.. && ls", "ask"),
        (&sub, "cd .. && cat sub/secret", "deny"),
        (outside.path(), "ls", "ask"),
        (outside.path(), "cat a", "ask"),
        (outside.path(), "cargo test", "ask"),
        (outside.path(), "make all", "ask"),
        (&cwd.path().join("link"), "ls", "ask"),
        (&cwd.path().join("sub/.git"), "touch hooks/x", "ask"),
    ] {
        let decision = decide_in(&policy, folder, command);
        assert_eq!(decision.outcome.to_string(), expected, "{command}: {:#?}", decision.chain);
    }
    let offered = decide_in(&policy, outside.path(), "make all").suggestions;
    assert!(offered.is_empty(), "a rule would not help: {offered:?}");
}

#[test]
fn no_rule_is_suggested_that_would_allow_changing_a_protected_path() {
    let cwd = tempfile::tempdir().unwrap();
    let policy = policy(cwd.path(), PermissionMode::Default, &[]);
    for command in [
        "echo hi > .git/hooks/pre-commit",
        "cp x .git/config",
        "tee .claude/settings.json",
        "cd .git && touch hooks/x",
        "chmod +x .husky/x",
        "make && mv evil .bashrc",
        "echo hi >> ~/.config/x",
    ] {
        let decision = decide(&policy, "Bash", command);
        assert_eq!(decision.outcome, Outcome::Ask, "{command}");
        assert!(decision.suggestions.is_empty(), "{command}: {:?}", decision.suggestions);
    }
    for command in ["echo hi > x", "cp .git/config x", "make", "cat .claude/x > y"] {
        assert!(!decide(&policy, "Bash", command).suggestions.is_empty(), "{command}");
    }
}

// Seen to fail when no folder counts as a bare repository.
#[test]
fn git_reads_without_approval_only_where_its_settings_are_protected() {
    let cwd = tempfile::tempdir().unwrap();
    let policy = policy(cwd.path(), PermissionMode::AcceptEdits, &[]);
    for folder in ["bare/objects", "bare/refs"] {
        std::fs::create_dir_all(cwd.path().join(folder)).unwrap();
    }
    std::fs::write(cwd.path().join("bare/HEAD"), "").unwrap();
    for folder in [".git/objects", ".git/refs"] {
        std::fs::create_dir_all(cwd.path().join(folder)).unwrap();
    }
    std::fs::write(cwd.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(cwd.path().join(".git/config"), "[core]\n\tbare = false\n").unwrap();
    for (command, expected) in [
        ("git status", "allow"),
        ("cd bare && git status", "ask"),
        ("mv a HEAD && git status", "ask"),
        ("git diff > x.patch", "ask"),
        ("git diff 2> /dev/null", "allow"),
    ] {
        assert_eq!(outcome(&policy, "Bash", command), expected, "{command}");
    }
    let trusting = super::policy(cwd.path(), PermissionMode::AcceptEdits, &["allow Bash(git:*)"]);
    assert_eq!(
        outcome(&trusting, "Bash", "touch a && git status"),
        "allow",
        "the user trusts the project"
    );
    let bare = cwd.path().join("bare");
    assert_eq!(decide_in(&policy, &bare, "/usr/bin/git log").outcome, Outcome::Ask);
}

// Seen to fail when only the readable parts of a command count.
#[test]
fn an_unclear_command_is_not_allowed_by_rules_for_its_parts() {
    let cwd = tempfile::tempdir().unwrap();
    let parts = policy(
        cwd.path(),
        PermissionMode::AcceptEdits,
        &["allow Bash(ls:*)", "allow Bash(eval:*)", "allow Bash(bash:*)"],
    );
    for command in ["ls 'x", "eval \"$X\"", "bash -c \"$X\"", "$X ls", "ls )", "ls\u{a0}x"] {
        assert_eq!(outcome(&parts, "Bash", command), "ask", "{command}");
    }
    // Nor does `bypassPermissions` allow it if there is a deny rule: the command might be what it forbids.
    let guarded = policy(cwd.path(), PermissionMode::BypassPermissions, &["deny Bash(rm:*)"]);
    assert_eq!(outcome(&guarded, "Bash", "eval \"$X\""), "ask");
    assert_eq!(outcome(&guarded, "Bash", "make"), "allow");
}

#[test]
fn no_mode_removes_the_disk_or_the_home_directory_without_approval() {
    let cwd = tempfile::tempdir().unwrap();
    let bypass = policy(cwd.path(), PermissionMode::BypassPermissions, &["allow Bash"]);
    for (command, expected) in [
        ("rm -rf /", "ask"),
        ("rm -rf /*", "ask"),
        ("rm -fr ~", "ask"),
        ("rm -r ~/", "ask"),
        ("rm --recursive $HOME", "ask"),
        ("rm -rf \"${HOME}\"/*", "ask"),
        ("rm -rf /h/user", "ask"),
        ("make && sudo /bin/rm -Rf --no-preserve-root /", "ask"),
        ("rm -rf /h/user/build", "allow"),
        ("rm -rf .", "allow"),
        ("rm ~", "allow"),
        ("rm -rf *", "allow"),
        ("echo rm -rf /", "allow"),
    ] {
        assert_eq!(outcome(&bypass, "Bash", command), expected, "{command}");
    }
}

/// Commands that a rule allows or that only read, and commands that are neither.
const ALLOWED: &[&str] = &["good one", "good 'two words'", "ls -la", "echo hi", "git status"];
const OTHERS: &[&str] = &[
    "bad one",
    "'bad'",
    "b\"a\"d x",
    "ls /etc",
    "echo x > /etc/x",
    "goodness",
    "PATH=/x good",
    "git push",
];

/// Commands that mode acceptEdits allows in addition, and commands that it does not.
const EDITS: &[&str] = &["touch x", "mkdir -p a/b", "rm x", "cp x y", "mv x y"];
const OTHER_EDITS: &[&str] = &[
    "echo hi > x",
    "touch /etc/x",
    "rm -rf .",
    "cp x .git/config",
    "echo hi > ~/.bashrc",
    "mv x ..",
    "touch $X",
    "make",
];

/// Commands that stay forbidden one folder further down, where `.` and `..` are other folders.
const EDITS_ELSEWHERE: &[&str] = &[
    "touch /etc/x",
    "cp x .git/config",
    "echo hi > ~/.bashrc",
    "touch $X",
    "make",
    "cat ../../x",
    "touch ../../x",
    "echo hi > ../../x",
    "cd .. && cat x",
];

fn nested() -> impl Strategy<Value = (String, bool)> {
    nested_of(ALLOWED.to_vec(), OTHERS.to_vec())
}

/// Commands of these parts, and whether all of them are of the first kind.
fn nested_of(
    allowed: Vec<&'static str>,
    others: Vec<&'static str>,
) -> impl Strategy<Value = (String, bool)> {
    let leaf = prop_oneof![
        3 => prop::sample::select(allowed).prop_map(|text| (text.to_owned(), true)),
        1 => prop::sample::select(others).prop_map(|text| (text.to_owned(), false)),
    ];
    let joints = [" && ", " || ", "; ", " | ", "\n", " & "];
    let frames = [
        ("echo $(", ")"),
        ("echo \"$(", ")\""),
        ("(", ")"),
        ("{ ", "; }"),
        ("if ", "; then ls; fi"),
        ("while ", "; do ls; done"),
        ("for i in a; do ", "; done"),
        ("case a in *) ", ";; esac"),
        ("x=$(", ")"),
        ("good <(", ")"),
        ("! ", ""),
        ("good ${x:-$(", ")}"),
        ("cat <<'E'\nbad\nE\n", ""),
        ("good `", "`"),
        ("good \"`", "`\""),
        ("cat <<E\n$(", ")\nE"),
        ("timeout 5 good $(", ")"),
    ];
    leaf.prop_recursive(4, 16, 2, move |inner| {
        prop_oneof![
            (inner.clone(), inner.clone(), prop::sample::select(joints.to_vec()))
                .prop_map(|(a, b, joint)| (format!("{}{joint}{}", a.0, b.0), a.1 && b.1)),
            (inner.clone(), prop::sample::select(frames.to_vec()))
                // Backticks do not nest: the inner ones would end the outer, and a part become an argument.
                .prop_map(|(a, (before, after))| match before.contains('`') && a.0.contains('`') {
                    true => a,
                    false => (format!("{before}{}{after}", a.0), a.1),
                }),
            inner.prop_map(|a| (format!("sh -c '{}'", a.0.replace('\'', "'\\''")), a.1)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_command_is_allowed_only_when_all_its_parts_are((command, is_allowed) in nested()) {
        let policy = policy(Path::new("/tmp"), PermissionMode::Default, &["allow Bash(good:*)"]);
        let decision = decide(&policy, "Bash", &command);
        prop_assert!(is_allowed || decision.outcome != Outcome::Allow, "{}: {:#?}", command, decision.chain);
    }

    #[test]
    fn accepting_edits_allows_no_other_part((command, is_allowed) in nested_of([ALLOWED, EDITS].concat(), [OTHERS, OTHER_EDITS].concat())) {
        let policy = policy(Path::new("/tmp"), PermissionMode::AcceptEdits, &["allow Bash(good:*)"]);
        let decision = decide(&policy, "Bash", &command);
        prop_assert!(is_allowed || decision.outcome != Outcome::Allow, "{}: {:#?}", command, decision.chain);
    }

    #[test]
    fn a_shell_in_another_folder_is_allowed_no_further_part((command, is_allowed) in nested_of([ALLOWED, EDITS].concat(), [OTHERS, EDITS_ELSEWHERE].concat()), is_inside in any::<bool>()) {
        let policy = policy(Path::new("/tmp"), PermissionMode::AcceptEdits, &["allow Bash(good:*)"]);
        let folder = if is_inside { "/tmp/sub" } else { "/etc" };
        let decision = decide_in(&policy, Path::new(folder), &command);
        prop_assert!(is_allowed && is_inside || decision.outcome != Outcome::Allow, "{}: {:#?}", command, decision.chain);
    }

    #[test]
    fn plan_mode_runs_nothing_that_changes((command, looks) in nested_of(vec!["ls -la", "echo hi", "git status", "cat x"], [EDITS, OTHER_EDITS, &["bad one", "git push"]].concat())) {
        let policy = policy(Path::new("/tmp"), PermissionMode::Plan, &["allow Bash(bad:*)", "allow Edit(**)"]);
        // The frames of the generator call `good`, which is not known to be harmless.
        let decision = decide(&policy, "Bash", &command);
        prop_assert!(looks || decision.outcome != Outcome::Allow, "{}: {:#?}", command, decision.chain);
    }

    #[test]
    fn a_denied_part_is_found_however_deep((command, is_allowed) in nested()) {
        let denied = ["deny Bash(bad:*)", "deny Bash(git push:*)", "deny Bash(goodness)"];
        let policy = policy(Path::new("/tmp"), PermissionMode::BypassPermissions, &denied);
        let decision = decide(&policy, "Bash", &command);
        let has_denied = !is_allowed && ["bad one", "git push", "goodness"].iter().any(|word| command.replace("\nbad\n", "").contains(word));
        prop_assert!(!has_denied || decision.outcome != Outcome::Allow, "{}: {:#?}", command, decision.chain);
    }
}
