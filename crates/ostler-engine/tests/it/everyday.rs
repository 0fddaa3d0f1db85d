//! How often users are asked: everyday commands, and which of them require approval.
//!
//! `cargo test -p ostler-engine --test it everyday -- --nocapture` prints a table.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ostler_engine::permission::{CallFacts, Outcome, Policy};
use ostler_engine::tool::Effect;
use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

const COMMANDS: &str = include_str!("everyday/commands.txt");

/// A command of the list.
struct Everyday {
    section: &'static str,
    runs: bool,
    command: String,
}

fn list() -> Vec<Everyday> {
    let mut section = "";
    let mut list = Vec::new();
    for line in COMMANDS.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            section = title;
        } else if let Some((word @ ("runs" | "asks"), command)) = line.split_once(' ') {
            let command = command.replace('⏎', "\n");
            list.push(Everyday { section, runs: word == "runs", command });
        }
    }
    list
}

/// A typical project: a repository with some files.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "README.md",
        "Cargo.toml",
        "package.json",
        "log.txt",
        "notes.txt",
        "data.csv",
        "src/main.rs",
        "src/lib.rs",
        "tests/it.rs",
        "docs/guide.md",
        "docs/read me.md",
        "scripts/run.sh",
        "web/package.json",
    ] {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text\n").unwrap();
    }
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["remote", "add", "origin", "https://example.com/x.git"],
        &["config", "user.name", "Somebody"],
        &["add", "."],
    ] {
        let status = Command::new("git")
            .args(args)
            .current_dir(&folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status();
        assert!(status.unwrap().success(), "git {args:?}");
    }
    folder
}

/// A policy without rules for a folder that the user trusts.
fn policy(folder: &Path) -> Policy {
    let mut policy = Policy::new(folder, PermissionMode::Default);
    policy.home = Some("/home/somebody".into());
    policy.trusts_project = true;
    policy
}

fn runs(policy: &Policy, command: &str) -> bool {
    let (input, effect) = (json!({"command": command}), Effect::Execute(command.to_owned()));
    let facts = CallFacts { tool: "Bash", input: &input, effect: &effect };
    policy.decide(&facts).outcome == Outcome::Allow
}

// Seen to fail when `git status` asks in a trusted folder, and when a word with `$` is taken for a literal one.
#[test]
fn everyday_commands_need_approval_only_where_the_list_says_so() {
    let folder = project();
    let policy = policy(folder.path());
    let list = list();
    assert!(list.len() >= 300, "{} commands", list.len());
    let mut wrong = Vec::new();
    let mut table: Vec<(&str, usize, usize)> = Vec::new();
    for everyday in &list {
        let runs = runs(&policy, &everyday.command);
        if runs != everyday.runs {
            let said = if runs { "runs" } else { "asks" };
            wrong.push(format!("{said}: {:?}", everyday.command));
        }
        if table.last().is_none_or(|(section, ..)| *section != everyday.section) {
            table.push((everyday.section, 0, 0));
        }
        let row = table.last_mut().unwrap();
        row.1 += 1;
        row.2 += usize::from(!runs);
    }
    for (section, n_commands, n_asked) in &table {
        println!("{n_asked:4} of {n_commands:4} require approval: {section}");
    }
    let n_asked: usize = table.iter().map(|row| row.2).sum();
    println!("{n_asked:4} of {:4} require approval", list.len());
    assert!(wrong.is_empty(), "{} differ from the list:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_list_has_every_command_of_the_recordings() {
    let listed: BTreeSet<String> = list().into_iter().map(|everyday| everyday.command).collect();
    let mut recorded = BTreeSet::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for frame in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            collect(&frame, &mut recorded);
        }
    }
    assert!(recorded.len() > 10, "the recordings have commands: {recorded:?}");
    let missing: Vec<_> = recorded.difference(&listed).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Notes the commands of Bash calls anywhere in a frame.
fn collect(value: &Value, commands: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let is_bash = ["name", "tool_name"]
                .iter()
                .any(|field| fields.get(*field).and_then(Value::as_str) == Some("Bash"));
            let input = ["input", "tool_input"].iter().find_map(|field| fields.get(*field));
            let command = input.and_then(|input| input.get("command")).and_then(Value::as_str);
            commands.extend(command.filter(|_| is_bash).map(str::to_owned));
            fields.values().for_each(|field| collect(field, commands));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, commands)),
        _ => {}
    }
}
