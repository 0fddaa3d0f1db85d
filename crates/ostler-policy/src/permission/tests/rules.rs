//! Which rules match which calls.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

// Seen to fail when rules about files do not hold for commands.
/// Each row: a rule, a tool, its argument, the outcome in mode `default`.
#[test]
fn rules_match_the_calls_that_they_name() {
    let cwd = tempfile::tempdir().unwrap();
    fs::create_dir_all(cwd.path().join("src")).unwrap();
    fs::write(cwd.path().join(".env"), "x").unwrap();
    for (rule, tool, words, expected) in [
        ("allow Bash", "Bash", "make; rm -rf x", "allow"),
        ("allow Bash(make:*)", "Bash", "make", "allow"),
        ("allow Bash(make:*)", "Bash", "make test", "allow"),
        ("allow Bash(make *)", "Bash", "make test", "allow"),
        ("allow Bash(make:*)", "Bash", "makefile", "ask"),
        ("allow Bash(make)", "Bash", "make test", "ask"),
        ("allow Bash(npm run test:*)", "Bash", "npm run test -- --watch", "allow"),
        ("allow Bash(npm run test:*)", "Bash", "npm run tests", "ask"),
        ("allow Bash(git commit -m 'a b')", "Bash", "git commit -m \"a b\"", "allow"),
        ("allow Bash(make x* y)", "Bash", "make xz y", "ask"),
        ("deny Bash(rm -r:*)", "Bash", "rm -rf x", "deny"),
        ("deny Bash(rm:*)", "Bash", "rmdir x", "ask"),
        ("deny Bash(rm:*)", "Bash", "/bin/rm x", "deny"),
        ("deny Bash(git push:*)", "Bash", "git -C /tmp push", "deny"),
        ("deny Bash(git push:*)", "Bash", "git $X", "ask"),
        ("deny Bash(* --force*)", "Bash", "git push --force", "deny"),
        ("deny Bash(rm:*)", "Bash", "bash -c 'rm x'", "deny"),
        ("deny Bash(rm:*)", "Bash", "ls | xargs rm", "deny"),
        ("ask Bash(ls:*)", "Bash", "ls", "ask"),
        ("allow Read(src/**)", "Read", "src/a/b.rs", "allow"),
        ("deny Read(src/**)", "Read", "src/a/b.rs", "deny"),
        ("deny Read(src/**)", "Grep", "src", "deny"),
        ("deny Read(src/**)", "Read", "lib/src/b.rs", "allow"),
        ("deny Read(*.env)", "Read", "deep/down/x.env", "deny"),
        ("deny Read(./x.env)", "Read", "deep/x.env", "allow"),
        ("deny Read(secret)", "Read", "secret/key", "deny"),
        ("deny Read(//etc/**)", "Read", "/etc/passwd", "deny"),
        ("allow Read(//etc/hosts)", "Read", "/etc/hosts", "allow"),
        ("allow Read(//etc/hosts)", "Read", "/etc/passwd", "ask"),
        ("allow Read(~/notes/**)", "Read", "/h/user/notes/x", "allow"),
        ("deny Read(/src/**)", "Read", "src/x", "deny"),
        ("deny Read(src/../secret)", "Read", "src/x", "allow"),
        ("deny Read(.env)", "Bash", "cat .env", "deny"),
        ("deny Read(.env)", "Bash", "cat src/../.env", "deny"),
        ("deny Read(.env)", "Bash", "wc -l < .env", "deny"),
        ("deny Read(.env)", "Bash", "grep -r KEY .", "ask"),
        ("deny Read(.env)", "Bash", "cat .e*", "deny"),
        ("deny Read(.env)", "Bash", "cat a", "allow"),
        ("deny Read(src/key)", "Bash", "cd src && cat key", "deny"),
        ("deny Edit(a)", "Bash", "echo > a", "deny"),
        ("deny Edit(a)", "Bash", "rm a", "deny"),
        ("allow Edit(src/**)", "Write", "src/x", "allow"),
        ("allow Edit(src/**)", "NotebookEdit", "src/x.ipynb", "allow"),
        ("allow Edit(src/**)", "Bash", "echo hi > src/x", "allow"),
        ("allow Write(src/**)", "Edit", "src/x", "ask"),
        ("allow Edit", "Write", ".git/config", "ask"),
        ("allow Edit(**)", "Write", ".claude/settings.json", "ask"),
        ("allow Edit(.claude/**)", "Write", ".claude/settings.json", "allow"),
        ("allow WebFetch", "WebFetch", "https://example.com/x", "allow"),
        ("allow WebFetch(domain:example.com)", "WebFetch", "https://example.com/x", "allow"),
        ("allow WebFetch(domain:example.com)", "WebFetch", "https://docs.Example.com./x", "allow"),
        ("allow WebFetch(domain:example.com)", "WebFetch", "https://evilexample.com", "ask"),
        ("allow WebFetch(domain:example.com)", "WebFetch", "https://example.com.evil.org", "ask"),
        ("allow WebFetch(domain:example.com)", "WebFetch", "https://example.com@evil.org", "ask"),
        ("deny WebFetch(domain:example.com)", "WebFetch", "https://a.example.com", "deny"),
        ("deny WebFetch(domain:example.com)", "WebFetch", "no address", "ask"),
        ("allow WebSearch", "WebSearch", "rust async", "allow"),
        ("deny WebSearch", "WebSearch", "rust async", "deny"),
        ("allow WebFetch", "WebSearch", "rust async", "ask"),
        ("deny Edit(src/**)", "NotebookEdit", "src/x.ipynb", "deny"),
        ("allow mcp__github", "mcp__github__create", "", "allow"),
        ("allow mcp__github__*", "mcp__github__create", "", "allow"),
        ("allow mcp__github__create", "mcp__github__create", "", "allow"),
        ("allow mcp__github__create", "mcp__github__delete", "", "ask"),
        ("allow mcp__git", "mcp__github__create", "", "ask"),
        ("allow mcp__github__cr*", "mcp__github__create", "", "allow"),
        ("allow mcp__github__cr*", "mcp__github__delete", "", "ask"),
        ("allow mcp__github__cr*", "mcp__other__create", "", "ask"),
        ("allow mcp__*", "mcp__github__create", "", "allow"),
        ("allow mcp__*", "Write", "x", "ask"),
        ("deny mcp__*", "mcp__github__create", "", "deny"),
        ("deny mcp__*__create", "mcp__github__create", "", "deny"),
        ("deny mcp__*__create", "mcp__github__delete", "", "ask"),
        ("deny mcp__a__b__*", "mcp__a__b__create", "", "deny"),
        ("ask mcp__git*", "mcp__github__create", "", "ask"),
        ("deny mcp__github", "mcp__github__create", "", "deny"),
        ("deny Agent(reviewer)", "Agent", "reviewer", "deny"),
        ("deny Task(reviewer)", "Agent", "reviewer", "deny"),
        ("deny Agent(reviewer)", "Agent", "writer", "allow"),
        ("deny Skill(pdf)", "Skill", "pdf", "deny"),
        ("deny Skill(pdf:*)", "Skill", "pdf-fill", "deny"),
        ("deny TodoWrite(x)", "TodoWrite", "", "ask"),
    ] {
        let policy = policy(cwd.path(), PermissionMode::Default, &[rule]);
        let decision = decide(&policy, tool, words);
        assert_eq!(
            decision.outcome.to_string(),
            expected,
            "{rule} | {tool} {words}: {:#?}",
            decision.chain
        );
    }
}

// Seen to fail when only the name counts, and not the target of a link.
#[test]
fn a_link_neither_leads_out_nor_around_a_rule() {
    let (cwd, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(cwd.path().join("secret"), "x").unwrap();
    symlink(cwd.path().join("secret"), cwd.path().join("innocent")).unwrap();
    symlink(elsewhere.path(), cwd.path().join("out")).unwrap();
    fs::create_dir(cwd.path().join(".claude")).unwrap();
    symlink(cwd.path().join(".claude"), cwd.path().join("plain")).unwrap();
    let accept = policy(
        cwd.path(),
        PermissionMode::AcceptEdits,
        &["deny Read(secret)", "allow Edit(ok/**)"],
    );
    for (tool, words, expected) in [
        ("Read", "innocent", "deny"),
        ("Bash", "cat innocent", "deny"),
        ("Write", "out/x", "ask"),
        ("Bash", "touch out/x", "ask"),
        ("Bash", "echo > out/x", "ask"),
        ("Write", "plain/settings.json", "ask"),
        ("Bash", "cp a plain/settings.json", "ask"),
        ("Write", "other", "allow"),
    ] {
        assert_eq!(outcome(&accept, tool, words), expected, "{tool} {words}");
    }
    assert!(!accept.read_guard().may_show(&cwd.path().join("innocent")));
    assert!(accept.read_guard().may_show(&cwd.path().join("other")));
}

#[test]
fn a_pattern_or_a_change_of_directory_does_not_lead_through_a_link() {
    let (cwd, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in ["sub", "plain"] {
        fs::create_dir(cwd.path().join(folder)).unwrap();
        fs::write(cwd.path().join(folder).join("file"), "x").unwrap();
    }
    symlink(elsewhere.path(), cwd.path().join("sub/sub")).unwrap();
    let policy = policy(cwd.path(), PermissionMode::Default, &[]);
    for (command, expected) in [
        ("cat plain/*", "allow"),
        ("cat sub/f*", "allow"),
        ("cat sub/*", "ask"),
        ("cat sub/s?b", "ask"),
        ("cd sub && ls", "allow"),
        ("cd sub && cat sub", "ask"),
        ("echo plain/*", "allow"),
        ("echo /etc/*", "ask"),
        ("for PATH in .; do ls; done", "ask"),
        ("LD_PRELOAD=./x bash -c ls", "ask"),
        ("PATH=. eval ls", "ask"),
    ] {
        assert_eq!(outcome(&policy, "Bash", command), expected, "{command}");
    }
}

#[test]
fn a_rule_about_files_holds_for_every_command_that_names_them() {
    let cwd = tempfile::tempdir().unwrap();
    let rules = &["allow Bash", "deny Read(.env)", "deny Edit(locked/**)", "deny Bash(rm:*)"];
    let policy = policy(cwd.path(), PermissionMode::Default, rules);
    for (command, expected) in [
        ("sed p .env", "deny"),
        ("base64 .env", "deny"),
        ("cp -r .env x", "deny"),
        ("python3 show.py .env", "deny"),
        ("python3 show.py env", "allow"),
        ("tee locked/x", "deny"),
        ("sed -i s/a/b/ locked/x", "deny"),
        ("sed s/a/b/ locked/x", "allow"),
        ("cargo test locked/x", "allow"),
        ("echo rm x | bash", "ask"),
        ("bash <<< 'rm x'", "ask"),
        ("bash script.sh", "allow"),
    ] {
        assert_eq!(outcome(&policy, "Bash", command), expected, "{command}");
    }
}

#[test]
fn a_search_shows_no_files_with_deny_or_ask_rules() {
    let cwd = tempfile::tempdir().unwrap();
    symlink(cwd.path().join("secret/key"), cwd.path().join("innocent")).unwrap();
    let rules = ["deny Read(secret/**)", "ask Read(*.env)", "allow Read(free.env)", "deny Edit(x)"];
    let policy = policy(cwd.path(), PermissionMode::BypassPermissions, &rules);
    for (path, shown) in [
        ("secret/key", false),
        ("deep/down/.env", false),
        ("free.env", false),
        ("x", true),
        ("secrets", true),
    ] {
        assert_eq!(policy.read_guard().may_show(&cwd.path().join(path)), shown, "{path}");
    }
    let link = cwd.path().join("innocent");
    fs::create_dir(cwd.path().join("secret")).unwrap();
    fs::write(cwd.path().join("secret/key"), "x").unwrap();
    assert!(!policy.read_guard().may_show(&link), "a link leads around the rule");
}

#[test]
fn only_an_allow_rule_for_exactly_this_host_names_it() {
    let rules = [
        "allow WebFetch(domain:LocalHost)",
        "allow WebFetch(domain:127.0.0.1)",
        "allow WebFetch(domain:*.corp.example)",
        "allow WebFetch(domain:example.com)",
        "ask WebFetch(domain:10.0.0.1)",
        "deny WebFetch(domain:10.0.0.2)",
        "allow WebFetch",
    ];
    let policy = policy(Path::new("/tmp"), PermissionMode::Default, &rules);
    for (host, named) in [
        ("localhost", true),
        ("127.0.0.1", true),
        ("example.com", true),
        ("a.localhost", false),
        ("a.example.com", false),
        ("a.corp.example", false),
        ("corp.example", false),
        ("10.0.0.1", false),
        ("10.0.0.2", false),
        ("10.0.0.3", false),
        ("", false),
    ] {
        assert_eq!(policy.names_host(host), named, "{host}");
    }
}
