//! Hooks for the directory of the shell, added directories and changed files.

use std::fs;
use std::path::{Path, PathBuf};

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolEvent, ToolOutput, erase};
use ostler_testkit::{Script, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{HookLog, callback, calls, matcher, next_callback, register, says, specific};
use crate::host::TestHost;

/// A tool that changes the directory, as a shell does.
struct Go;

#[derive(Deserialize, JsonSchema)]
struct Where {
    from: PathBuf,
    to: PathBuf,
}

impl Tool for Go {
    const NAME: &'static str = "Go";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = Where;

    fn effect(&self, _: &ToolCx, _: &Where) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Where) -> Result<ToolOutput, ToolError> {
        let Where { from, to } = args;
        cx.announce(ToolEvent::Moved { from, to }).await.map_err(ToolError::Failed)?;
        Ok(ToolOutput::new("there", json!(null)))
    }
}

fn goes(from: &Path, to: &Path) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use("Go", json!({"from": from, "to": to})))
        .rule(when(), reply().text("Done."))
}

#[tokio::test]
async fn a_change_of_the_shells_directory_is_reported_and_hooks_run_there() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().to_owned(), folder.path().join("src"));
    fs::create_dir(&to).unwrap();
    let ledger = HookLog::new();
    let mut hooks = ledger.hooks(&["PreToolUse", "CwdChanged", "Stop"]);
    hooks["PostToolUse"] = json!([{"hooks": [{"type": "command", "command": format!("pwd > {}", ledger.path("pwd").display())}]}]);
    let mut host = TestHost::with(goes(&from, &to), |options| {
        options.cwd = from.clone();
        options.hooks = vec![hooks];
        options.tools.push(erase(Go));
    })
    .await;
    host.prompt("go").await;
    host.result().await;
    let entries = ledger.entries();
    let [before, moved, stop] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(before["cwd"], json!(from));
    assert_eq!((&moved["old_cwd"], &moved["new_cwd"]), (&json!(from), &json!(to)));
    assert_eq!((&moved["cwd"], &stop["cwd"]), (&json!(to), &json!(to)));
    let pwd = fs::read_to_string(ledger.path("pwd")).unwrap();
    assert_eq!(Path::new(pwd.trim()), to.canonicalize().unwrap());
}

#[tokio::test]
async fn a_callback_is_notified_of_the_shells_new_directory() {
    let folder = tempfile::tempdir().unwrap();
    let script = goes(Path::new("/"), folder.path());
    let mut host = TestHost::with(script, |options| options.tools.push(erase(Go))).await;
    register(&mut host, "CwdChanged", matcher(json!({}))).await;
    host.prompt("go").await;
    let (id, input) = next_callback(&mut host).await;
    assert_eq!((&input["hook_event_name"], &input["old_cwd"]), (&json!("CwdChanged"), &json!("/")));
    host.respond(id, Ok(json!({}))).await;
    assert_eq!(host.result().await.result.as_deref(), Some("Done."));
}

/// A session in a folder, with a callback for files.
async fn watching(folder: &Path, hook: Value, hooks: Vec<Value>) -> TestHost {
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| {
        options.cwd = folder.to_owned();
        options.hooks = hooks;
    })
    .await;
    register(&mut host, "FileChanged", matcher(hook)).await;
    host.until("control_response").await;
    host
}

async fn next_change(host: &mut TestHost, answer: Value) -> (String, String) {
    let (id, input) = next_callback(host).await;
    host.respond(id, Ok(answer)).await;
    let path = PathBuf::from(input["file_path"].as_str().unwrap());
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(path.is_absolute());
    (name, input["event"].as_str().unwrap().to_owned())
}

fn change(name: &str, event: &str) -> (String, String) {
    (name.to_owned(), event.to_owned())
}

#[tokio::test]
async fn a_file_that_a_matcher_names_is_watched_while_the_session_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".env");
    let mut host = watching(folder.path(), json!({"matcher": ".envrc|.env"}), Vec::new()).await;
    fs::write(folder.path().join("other"), "not watched").unwrap();
    fs::write(&file, "A=1").unwrap();
    assert_eq!(next_change(&mut host, json!({})).await, change(".env", "add"));
    fs::write(&file, "A=1, B=2").unwrap();
    assert_eq!(next_change(&mut host, json!({})).await, change(".env", "change"));
    fs::remove_file(&file).unwrap();
    assert_eq!(next_change(&mut host, json!({})).await, change(".env", "unlink"));
}

#[tokio::test]
async fn hooks_can_replace_the_list_of_watched_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("one"), "1").unwrap();
    let first = specific("SessionStart", json!({"watchPaths": [path("one")]}));
    let start =
        json!({"SessionStart": [{"hooks": [{"type": "command", "command": says(&first)}]}]});
    let mut host = watching(folder.path(), json!({}), vec![start]).await;
    host.prompt("go").await;
    host.result().await;
    fs::write(path("one"), "1, changed").unwrap();
    let next = specific("FileChanged", json!({"watchPaths": [path("two")]}));
    assert_eq!(next_change(&mut host, next).await, change("one", "change"));
    // The prompt waits for the watcher, so from here on the new list holds.
    host.prompt("again").await;
    host.result().await;
    fs::write(path("one"), "1, changed again").unwrap();
    fs::write(path("two"), "2").unwrap();
    assert_eq!(next_change(&mut host, json!({})).await, change("two", "add"));
}

#[tokio::test]
async fn a_change_is_reported_before_the_prompt_that_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = HookLog::new();
    let hooks = ledger.hooks(&["FileChanged", "UserPromptSubmit"]);
    let mut hooks = hooks;
    hooks["FileChanged"][0]["matcher"] = json!("notes");
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| {
        options.cwd = folder.path().to_owned();
        options.hooks = vec![hooks];
    })
    .await;
    fs::write(folder.path().join("notes"), "1").unwrap();
    host.prompt("go").await;
    host.result().await;
    let entries = ledger.entries();
    let names: Vec<_> = entries.iter().map(|entry| &entry["hook_event_name"]).collect();
    assert_eq!(names, ["FileChanged", "UserPromptSubmit"]);
    assert_eq!(entries[0]["event"], "add");
}

#[tokio::test]
async fn a_directory_that_the_host_adds_is_reported_unless_it_was_accessible() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let inside = folder.path().join("src");
    let mut host = TestHost::with(calls("Change"), |options| {
        options.cwd = folder.path().to_owned();
        options.policy.cwd = folder.path().to_owned();
    })
    .await;
    register(&mut host, "DirectoryAdded", matcher(json!({"matcher": "register_repo_root"}))).await;
    host.prompt("go").await;
    let question = host.until("control_request can_use_tool").await;
    let ostler_proto::frame::ToHost::ControlRequest(question) = question else { unreachable!() };
    let update = json!({"type": "addDirectories", "destination": "session",
        "directories": [inside, other.path()]});
    let allow = json!({"behavior": "allow", "updatedInput": {"word": "it"},
        "updatedPermissions": [update]});
    host.respond(question.request_id.unwrap(), Ok(allow)).await;
    let (id, input) = next_callback(&mut host).await;
    assert_eq!(input["hook_event_name"], "DirectoryAdded");
    assert_eq!(input["directory"], json!(other.path()));
    assert_eq!(input["source"], "register_repo_root");
    host.respond(id, Ok(json!({}))).await;
    host.result().await;
    let n_told = host.story().iter().filter(|line| line.contains("hook_callback")).count();
    assert_eq!(n_told, 1);
}

#[tokio::test]
async fn a_turn_does_not_wait_for_hooks_about_an_added_directory() {
    let other = tempfile::tempdir().unwrap();
    let mut host =
        callback(calls("Change"), "DirectoryAdded", matcher(json!({})), Ok(json!({}))).await;
    let update =
        json!({"type": "addDirectories", "destination": "session", "directories": [other.path()]});
    let allow = json!({"behavior": "allow", "updatedInput": {"word": "it"},
        "updatedPermissions": [update]});
    host.answer = None;
    host.prompt("go").await;
    let question = host.until("control_request can_use_tool").await;
    let ostler_proto::frame::ToHost::ControlRequest(question) = question else { unreachable!() };
    host.respond(question.request_id.unwrap(), Ok(allow)).await;
    // The callback is never answered.
    assert_eq!(host.result().await.result.as_deref(), Some("Done: changed it"));
}
