//! Repositories that the operator trusts: only there, `git` commands that only read run without approval.

use std::path::Path;
use std::process::Command;

use ostler_testkit::{Rule, Script, reply, when};
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

fn git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with another one inside, as an agent could have cloned it.
fn repositories(workspace: &Path) {
    for folder in [workspace.to_owned(), workspace.join("clone")] {
        std::fs::create_dir_all(&folder).unwrap();
        git(&folder, &["init", "-q"]);
        git(&folder, &["commit", "-q", "--allow-empty", "-m", "x"]);
    }
}

/// A server whose agents run this command at every prompt.
async fn desk(command: &str, is_trusted: bool) -> Desk {
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .with(Rule::new(when(), reply().tool_use("Bash", json!({"command": command}))));
    Desk::with(script, move |config| {
        if !config.workspace.join(".git").exists() {
            repositories(&config.workspace);
        }
        if is_trusted {
            config.trusted_repositories = vec![config.workspace.clone()];
        }
    })
    .await
}

/// The state of a run of the command in a folder: `completed`, or `waiting` for approval.
async fn fate(client: &Client, folder: &str) -> String {
    let session = client.post("/api/sessions", json!({"cwd": folder})).await;
    let run = client.prompt(session["id"].as_str().unwrap(), "go").await;
    let path = format!("/api/runs/{run}");
    let is_settled = |run: &Value| matches!(run["state"].as_str(), Some("completed" | "waiting"));
    let run = client.watch(&path, "a settled run", is_settled).await;
    run["state"].as_str().unwrap().to_owned()
}

// Mutants: `trusted_repositories` is not handed to the engine (the first row waits); `is_trusted` compares no folders (the
// clone runs); `danger` finds nothing (the hostile configuration runs).
#[tokio::test]
async fn git_runs_without_approval_in_repositories_that_the_operator_names_and_nowhere_else() {
    let trusting = desk("git status", true).await;
    let client = trusting.client();
    assert_eq!(fate(&client, ".").await, "completed");
    assert_eq!(
        fate(&client, "clone").await,
        "waiting",
        "a repository that an agent cloned is not trusted"
    );
    let config = trusting.workspace().join(".git/config");
    let plain = std::fs::read_to_string(&config).unwrap();
    let canary = trusting.workspace().join("canary");
    let hostile = format!("{plain}\tfsmonitor = touch {}\n", canary.display());
    std::fs::write(&config, hostile).unwrap();
    assert_eq!(fate(&client, ".").await, "waiting", "its configuration can start programs");
    assert!(!canary.exists());
    std::fs::write(&config, plain).unwrap();
    assert_eq!(fate(&client, ".").await, "completed");

    let wary = desk("git status", false).await;
    assert_eq!(fate(&wary.client(), ".").await, "waiting");
    let nested = desk("cd clone && git status", true).await;
    assert_eq!(fate(&nested.client(), ".").await, "waiting");
}

// Mutant: the place of a call has no trusted repositories: the rule for `make` is not offered, because `git status` would
// need one, too.
#[tokio::test]
async fn the_offered_rules_consider_the_trusted_repositories() {
    let desk = desk("git status && make all", true).await;
    let client = desk.client();
    assert_eq!(fate(&client, ".").await, "waiting");
    let asked = client.pending().await;
    let offered = asked["rules"].as_array().unwrap();
    let is_for_make = |rule: &&str| rule.contains("make") && !rule.contains("git");
    assert!(offered.iter().filter_map(Value::as_str).any(|rule| is_for_make(&rule)), "{offered:?}");
}
