//! Every event that happens in this engine: when it fires, and its input.

use ostler_engine::context::memory::MemoryFile;
use ostler_engine::permission::Policy;
use ostler_engine::store::{LineContext, Projects, SessionStart};
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::{HookLog, callback, calls, matcher, next_callback};
use crate::host::TestHost;

/// The input of hooks for these events, while one prompt is answered and the session closes.
async fn hook_inputs(
    script: Script,
    events: &[&str],
    change: impl FnOnce(&mut Options),
) -> Vec<Value> {
    let ledger = HookLog::new();
    let mut host = TestHost::with(script, |options| {
        options.hooks = vec![ledger.hooks(events)];
        change(options);
    })
    .await
    .answering(json!({"behavior": "allow", "updatedInput": {"word": "it"}}));
    host.prompt("go").await;
    host.result().await;
    host.close();
    while host.next().await.is_some() {}
    ledger.entries()
}

type Options = ostler_engine::session::SessionOptions;

fn names(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["hook_event_name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_events_of_one_tool_call_come_in_their_order() {
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolBatch",
        "Stop",
        "SessionEnd",
    ];
    assert_eq!(names(&hook_inputs(calls("Look"), &events, |_| {}).await), events);
}

#[tokio::test]
async fn every_input_carries_session_transcript_directory_mode_and_prompt() {
    let root = tempfile::tempdir().unwrap();
    let scene =
        LineContext { cwd: root.path().to_owned(), version: "1".to_owned(), entrypoint: None };
    let opened = Projects::new(root.path()).open(scene, &SessionStart::default()).unwrap();
    let file = opened.writer.path().display().to_string();
    let id = opened.writer.session_id().to_string();
    let events = ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"];
    let entries =
        hook_inputs(calls("Look"), &events, |options| options.opened = Some(opened)).await;
    for entry in &entries {
        assert_eq!(entry["session_id"], id, "{entry}");
        assert_eq!(entry["transcript_path"], file, "{entry}");
        assert_eq!(entry["cwd"], std::env::temp_dir().display().to_string(), "{entry}");
        let has_prompt = entry["hook_event_name"] != "SessionStart";
        assert_eq!(entry["prompt_id"].is_string(), has_prompt, "{entry}");
        let event = entry["hook_event_name"].as_str().unwrap();
        let has_mode = !["SessionStart", "SessionEnd"].contains(&event);
        assert_eq!(entry.get("permission_mode").is_some(), has_mode, "{entry}");
    }
}

#[tokio::test]
async fn pre_and_post_tool_use_receive_the_call_and_its_result() {
    let entries = hook_inputs(calls("Look"), &["PreToolUse", "PostToolUse"], |_| {}).await;
    for entry in &entries {
        assert_eq!(
            (&entry["tool_name"], &entry["tool_input"]),
            (&json!("Look"), &json!({"word": "it"}))
        );
        assert!(entry["tool_use_id"].is_string());
    }
    assert_eq!(entries[1]["tool_response"], json!({"saw": "it"}));
    assert!(entries[1]["duration_ms"].is_u64(), "{}", entries[1]);
}

#[tokio::test]
async fn post_tool_use_failure_comes_instead_of_post_tool_use() {
    let entries = hook_inputs(calls("Break"), &["PostToolUse", "PostToolUseFailure"], |_| {}).await;
    assert_eq!(names(&entries), ["PostToolUseFailure"]);
    assert!(entries[0]["error"].as_str().unwrap().contains("broken by it"));
    assert_eq!(entries[0]["is_interrupt"], false);
}

#[tokio::test]
async fn post_tool_batch_receives_all_calls_of_a_response() {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply()
                .tool_use("Look", json!({"word": "one"}))
                .tool_use("Look", json!({"word": "two"})),
        )
        .rule(when(), reply().text("Done."));
    let entries = hook_inputs(script, &["PostToolBatch"], |_| {}).await;
    assert_eq!(entries.len(), 1);
    let calls = entries[0]["tool_calls"].as_array().unwrap();
    // The results as the model reads them.
    let mut seen: Vec<_> =
        calls.iter().map(|call| call["tool_response"].as_str().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, ["saw one", "saw two"]);
}

#[tokio::test]
async fn user_prompt_submit_receives_the_prompt() {
    let entries = hook_inputs(calls("Look"), &["UserPromptSubmit"], |_| {}).await;
    assert_eq!(entries[0]["prompt"], "go");
}

#[tokio::test]
async fn session_start_receives_source_and_model_once() {
    let ledger = HookLog::new();
    let script = Script::new().rule(when(), reply().text("Done."));
    let hooks = ledger.hooks(&["SessionStart"]);
    let mut host = TestHost::with(script, |options| options.hooks = vec![hooks]).await;
    for _ in 0..2 {
        host.prompt("go").await;
        host.result().await;
    }
    let entries = ledger.entries();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["source"], &entries[0]["model"]),
        (&json!("startup"), &json!("test-model"))
    );
}

#[tokio::test]
async fn session_start_of_a_resumed_session_has_the_source_resume() {
    let root = tempfile::tempdir().unwrap();
    let scene =
        || LineContext { cwd: root.path().to_owned(), version: "1".to_owned(), entrypoint: None };
    let projects = Projects::new(root.path());
    let script = || Script::new().rule(when(), reply().text("Done."));
    let opened = projects.open(scene(), &SessionStart::default()).unwrap();
    hook_inputs(script(), &[], |options| options.opened = Some(opened)).await;
    let latest =
        SessionStart { begin: ostler_engine::store::StartFrom::Latest, ..SessionStart::default() };
    let opened = projects.open(scene(), &latest).unwrap();
    let entries =
        hook_inputs(script(), &["SessionStart"], |options| options.opened = Some(opened)).await;
    assert_eq!(entries[0]["source"], "resume");
}

#[tokio::test]
async fn session_end_fires_once_when_the_host_leaves() {
    let script = Script::new().rule(when(), reply().text("Done."));
    let entries = hook_inputs(script, &["SessionEnd"], |_| {}).await;
    assert_eq!((names(&entries), &entries[0]["reason"]), (vec!["SessionEnd"], &json!("other")));
}

#[tokio::test]
async fn session_end_does_not_wait_for_a_host_that_is_gone() {
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = callback(script, "SessionEnd", matcher(json!({})), Ok(json!({}))).await;
    host.prompt("go").await;
    host.result().await;
    host.close();
    while let Some(frame) = host.next().await {
        assert!(!matches!(frame, ToHost::ControlRequest(_)), "{frame:?}");
    }
}

#[tokio::test]
async fn subagent_start_and_stop_receive_the_id_and_kind() {
    let work = json!({"description": "d", "prompt": "subwork"});
    let script = Script::new()
        .rule(when().prompt_contains("subwork"), reply().text("Sub."))
        .rule(when().turn(0), reply().tool_use("Agent", work))
        .rule(when(), reply().text("Done."));
    let root = tempfile::tempdir().unwrap();
    let scene =
        LineContext { cwd: root.path().to_owned(), version: "1".to_owned(), entrypoint: None };
    let opened = Projects::new(root.path()).open(scene, &SessionStart::default()).unwrap();
    let main = opened.writer.path().display().to_string();
    let events = ["SubagentStart", "SubagentStop", "Stop"];
    let entries = hook_inputs(script, &events, |options| options.opened = Some(opened)).await;
    assert_eq!(names(&entries), events);
    let (start, stop) = (&entries[0], &entries[1]);
    assert_eq!(start["agent_type"], "general-purpose");
    assert_eq!(start["agent_id"], stop["agent_id"]);
    assert!(start.get("permission_mode").is_none());
    assert_eq!(
        (&stop["stop_hook_active"], &stop["last_assistant_message"]),
        (&json!(false), &json!("Sub."))
    );
    let own = stop["agent_transcript_path"].as_str().unwrap();
    assert!(own != main && std::path::Path::new(own).is_file(), "{own}");
    assert_eq!(stop["transcript_path"], main);
    assert!(entries[2].get("agent_id").is_none(), "the session itself is not a subagent");
}

#[tokio::test]
async fn hooks_inside_a_subagent_receive_its_id() {
    let work = json!({"description": "d", "prompt": "subwork"});
    let script = Script::new()
        .rule(when().prompt_contains("subwork").has_tool_result(true), reply().text("Sub."))
        .rule(when().prompt_contains("subwork"), reply().tool_use("Look", json!({"word": "it"})))
        .rule(when().turn(0), reply().tool_use("Agent", work))
        .rule(when(), reply().text("Done."));
    let entries = hook_inputs(script, &["PreToolUse"], |_| {}).await;
    let of = |tool: &str| entries.iter().find(|entry| entry["tool_name"] == tool).unwrap().clone();
    assert!(of("Agent").get("agent_id").is_none());
    assert!(of("Look")["agent_id"].is_string());
}

#[tokio::test]
async fn permission_request_receives_the_call_and_suggested_rules() {
    let hook = matcher(json!({}));
    let mut host = callback(calls("Change"), "PermissionRequest", hook, Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    let (_, input) = next_callback(&mut host).await;
    assert_eq!(
        (&input["tool_name"], &input["tool_input"]),
        (&json!("Change"), &json!({"word": "it"}))
    );
    assert!(input["permission_suggestions"].is_array(), "{input}");
}

#[tokio::test]
async fn permission_denied_fires_when_the_user_was_not_asked() {
    let entries = hook_inputs(calls("Change"), &["PermissionDenied"], |options| {
        options.policy = Policy::new(std::env::temp_dir(), PermissionMode::DontAsk);
    })
    .await;
    assert_eq!(entries[0]["tool_name"], "Change");
    assert!(entries[0]["tool_use_id"].is_string());
    assert!(!entries[0]["reason"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn a_notification_fires_for_an_open_permission_question() {
    let mut host =
        callback(calls("Change"), "Notification", matcher(json!({})), Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    let (id, input) = next_callback(&mut host).await;
    assert_eq!(input["notification_type"], "permission_prompt");
    assert!(input["message"].as_str().unwrap().contains("Change"), "{input}");
    // Its text for the model goes with the next prompt.
    let context = super::specific("Notification", json!({"additionalContext": "she is at lunch"}));
    host.respond(id, Ok(context)).await;
    host.interrupt().await;
    host.result().await;
    host.answer = Some(Ok(json!({"behavior": "deny", "message": "no"})));
    host.prompt("again").await;
    host.result().await;
    let transcripts: Vec<_> =
        host.api.requests().iter().map(|request| request.transcript()).collect();
    assert!(transcripts.last().unwrap().contains("she is at lunch"), "{transcripts:?}");
}

#[tokio::test]
async fn a_notification_fires_when_the_session_waits_for_a_prompt() {
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| {
        options.idle_notice = Some(std::time::Duration::from_millis(1));
    })
    .await;
    super::register(&mut host, "Notification", matcher(json!({"matcher": "idle_prompt"}))).await;
    host.prompt("go").await;
    let (_, input) = next_callback(&mut host).await;
    assert_eq!(input["notification_type"], "idle_prompt");
    assert!(host.story().iter().any(|line| line.starts_with("result")), "only after the turn");
}

#[tokio::test]
async fn a_matcher_selects_events_by_their_subject() {
    let ledger = HookLog::new();
    let hook = |file: &str| json!({"type": "command", "command": ledger.note(file)});
    let hooks = json!({"SessionEnd": [
        {"matcher": "other", "hooks": [hook("yes")]},
        {"matcher": "clear", "hooks": [hook("no")]},
    ]});
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| options.hooks = vec![hooks]).await;
    host.prompt("go").await;
    host.result().await;
    host.close();
    while host.next().await.is_some() {}
    assert!(ledger.has("yes") && !ledger.has("no"));
}

#[tokio::test]
async fn stop_failure_comes_instead_of_stop_when_the_model_fails() {
    let script = Script::new().rule(when(), reply().status(ostler_testkit::Status::new(401)));
    let entries = hook_inputs(script, &["Stop", "StopFailure"], |_| {}).await;
    assert_eq!(names(&entries), ["StopFailure"]);
    assert_eq!(entries[0]["error"], "authentication_failed");
    assert!(entries[0]["error_details"].is_string());
}

#[tokio::test]
async fn instructions_loaded_fires_for_each_file() {
    let script = Script::new().rule(when(), reply().text("Done."));
    let file = |path: &str| MemoryFile { path: path.into(), text: "Use tabs.".to_owned() };
    let entries = hook_inputs(script, &["InstructionsLoaded"], |options| {
        options.folders.user = Some("/config".into());
        options.memory = vec![
            file("/config/CLAUDE.md"),
            file("/project/style.md"),
            file("/project/CLAUDE.local.md"),
        ];
    })
    .await;
    let lines: Vec<_> = entries
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap().to_owned();
            [text("file_path"), text("memory_type"), text("load_reason")].join(" ")
        })
        .collect();
    assert_eq!(
        lines,
        [
            "/config/CLAUDE.md User session_start",
            "/project/style.md Project include",
            "/project/CLAUDE.local.md Local session_start"
        ]
    );
}

#[tokio::test]
async fn hooks_for_events_that_never_happen_are_reported_once() {
    let ledger = HookLog::new();
    let script = Script::new().rule(when(), reply().text("Done."));
    let hooks = ledger.hooks(&["WorktreeCreate", "TeammateIdle", "Stop"]);
    let mut host = TestHost::with(script, |options| options.hooks = vec![hooks]).await;
    host.prompt("go").await;
    host.result().await;
    let remarks: Vec<_> = host
        .seen
        .iter()
        .filter_map(|frame| match frame {
            ToHost::System(System::Informational(remark)) => Some(remark.content.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        remarks,
        [
            "hooks for TeammateIdle, WorktreeCreate never run: these events do not happen in this version"
        ]
    );
    assert_eq!(names(&ledger.entries()), ["Stop"]);
}
