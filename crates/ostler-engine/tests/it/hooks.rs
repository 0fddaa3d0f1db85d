//! What hooks can do: commands from settings and callbacks of the host.

mod asking;
mod begin_and_end;
mod conditions;
mod config;
mod display;
mod effects;
mod elicitation;
mod events;
mod http;
mod models;
mod odd;
mod places;
mod running;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ostler_engine::turn::INTERRUPTED_TOOLS;
use ostler_proto::RequestId;
use ostler_proto::control::{AskEngine, AskHost, Initialize};
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookMatcher;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::host::TestHost;

pub(crate) fn calls(tool: &str) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use(tool, json!({"word": "it"})))
        .rule(when().has_tool_result(true), reply().text("Done: {{tool_result}}"))
        .rule(when().prompt_contains("again"), reply().text("Still done."))
}

/// A session with one command hook.
async fn command(script: Script, event: &str, command: &str) -> TestHost {
    let hooks =
        json!({event: [{"hooks": [{"type": "command", "command": command, "timeout": 20}]}]});
    TestHost::with(script, |options| options.hooks = vec![hooks]).await
}

/// A session with one callback hook, which the host answers with `answer`.
async fn callback(
    script: Script,
    event: &str,
    matcher: HookMatcher,
    answer: Result<Value, String>,
) -> TestHost {
    let mut host = TestHost::start(script).await;
    host.answer = Some(answer);
    register(&mut host, event, matcher).await;
    host
}

/// Registers a callback with `initialize`.
async fn register(host: &mut TestHost, event: &str, matcher: HookMatcher) {
    let matcher = HookMatcher { hook_callback_ids: vec!["hook_0".into()], ..matcher };
    let hooks = BTreeMap::from([(event.to_owned(), vec![matcher])]);
    let initialize = Initialize { hooks: Some(hooks), ..Initialize::default() };
    host.ask("init", AskEngine::Initialize(Box::new(initialize))).await;
}

fn matcher(mut fields: Value) -> HookMatcher {
    fields["hookCallbackIds"] = json!([]);
    serde_json::from_value(fields).unwrap()
}

/// The next call of a callback: its request id, and the callback's input.
async fn next_callback(host: &mut TestHost) -> (RequestId, Value) {
    loop {
        if let ToHost::ControlRequest(request) = host.next().await.unwrap()
            && let AskHost::HookCallback(callback) = request.request
        {
            return (request.request_id.unwrap(), serde_json::to_value(callback.input).unwrap());
        }
    }
}

/// A command that prints this answer.
fn says(answer: &Value) -> String {
    format!("printf '%s' '{answer}'")
}

fn specific(event: &str, mut fields: Value) -> Value {
    fields["hookEventName"] = json!(event);
    json!({ "hookSpecificOutput": fields })
}

/// A folder in which hooks log their input.
struct HookLog(tempfile::TempDir);

impl HookLog {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A named pipe: a reader waits for a writer, and a writer for a reader.
    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    /// A command that appends its input to a file.
    fn note(&self, name: &str) -> String {
        format!("cat >> {}", self.path(name).display())
    }

    /// Settings with one such command per event.
    fn hooks(&self, events: &[&str]) -> Value {
        let hook = json!([{"hooks": [{"type": "command", "command": self.note("all")}]}]);
        events.iter().map(|event| ((*event).to_owned(), hook.clone())).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    fn count(&self, name: &str) -> usize {
        std::fs::read_to_string(self.path(name)).unwrap_or_default().lines().count()
    }

    /// The logged input of all events.
    fn entries(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("all")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

async fn answered(mut host: TestHost) -> (String, Vec<String>) {
    host.prompt("go").await;
    let result = host.result().await.result.unwrap_or_default();
    (result, host.story())
}

#[tokio::test]
async fn a_command_that_objects_denies_the_call() {
    let host = command(calls("Look"), "PreToolUse", "echo 'not today' >&2; exit 2").await;
    let (text, story) = answered(host).await;
    assert_eq!(text, "Done: PreToolUse:Look hook error: not today");
    assert!(!story.iter().any(|line| line.contains("saw it")));
}

#[tokio::test]
async fn a_command_reads_the_event_and_may_change_the_input() {
    let script = r#"read -r line; case "$line" in *'"tool_name":"Look"'*) ;; *) exit 2;; esac
        echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"word":"other"}}}'"#;
    assert_eq!(
        answered(command(calls("Look"), "PreToolUse", script).await).await.0,
        "Done: saw other"
    );
}

#[tokio::test]
async fn other_exit_codes_are_reported_and_change_nothing() {
    let (text, story) =
        answered(command(calls("Look"), "PreToolUse", "echo oops >&2; exit 3").await).await;
    assert_eq!(text, "Done: saw it");
    assert!(story.contains(&"system informational".to_owned()), "{story:?}");
}

#[tokio::test]
async fn a_guard_that_hangs_or_gives_a_malformed_answer_denies() {
    let hooks = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "sleep 60", "timeout": 0.2}]}]});
    let host = TestHost::with(calls("Look"), |options| options.hooks = vec![hooks]).await;
    assert!(answered(host).await.0.contains("did not respond before its timeout"));
    let host = command(calls("Look"), "PreToolUse", "echo '{broken'").await;
    assert!(answered(host).await.0.contains("malformed"));
}

#[tokio::test]
async fn a_watcher_that_hangs_changes_nothing() {
    let hooks = json!({"PostToolUse": [{"hooks": [{"type": "command", "command": "sleep 60", "timeout": 0.2}]}]});
    let host = TestHost::with(calls("Look"), |options| options.hooks = vec![hooks]).await;
    assert_eq!(answered(host).await.0, "Done: saw it");
}

#[tokio::test]
async fn a_callback_allows_without_asking_the_host_again() {
    let allow = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    let host = callback(calls("Change"), "PreToolUse", HookMatcher::default(), Ok(allow)).await;
    let (text, story) = answered(host).await;
    assert_eq!(text, "Done: changed it");
    assert!(!story.iter().any(|line| line.contains("can_use_tool")), "{story:?}");
}

#[tokio::test]
async fn a_callback_that_answers_ask_makes_the_engine_ask_the_host() {
    let ask = json!({"behavior": "allow", "hookSpecificOutput":
        {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "odd"}});
    let host = callback(calls("Look"), "PreToolUse", HookMatcher::default(), Ok(ask)).await;
    let (_, story) = answered(host).await;
    assert!(story.contains(&"control_request can_use_tool Look".to_owned()), "{story:?}");
}

#[tokio::test]
async fn a_callback_that_fails_denies_unless_it_may_fail() {
    let host =
        callback(calls("Look"), "PreToolUse", HookMatcher::default(), Err("boom".into())).await;
    assert!(answered(host).await.0.contains("boom"));
    let matcher =
        serde_json::from_value(json!({"hookCallbackIds": [], "onFailure": "continue"})).unwrap();
    let host = callback(calls("Look"), "PreToolUse", matcher, Err("boom".into())).await;
    assert_eq!(answered(host).await.0, "Done: saw it");
}

#[tokio::test]
async fn a_hook_runs_only_for_the_tools_of_its_matcher() {
    let matcher =
        serde_json::from_value(json!({"hookCallbackIds": [], "matcher": "Change"})).unwrap();
    let host = callback(calls("Look"), "PreToolUse", matcher, Err("boom".into())).await;
    assert_eq!(answered(host).await.0, "Done: saw it");
}

#[tokio::test]
async fn a_slow_callback_is_cancelled() {
    let matcher: HookMatcher =
        serde_json::from_value(json!({"hookCallbackIds": [], "timeout": 0.1})).unwrap();
    let mut host = callback(calls("Look"), "PreToolUse", matcher, Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    host.until("control_request hook_callback").await;
    host.until("control_cancel_request").await;
    assert!(host.result().await.result.unwrap().contains("did not respond"));
}

#[tokio::test]
async fn hooks_add_text_for_the_model() {
    let context = r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"and it rains"}}'"#;
    let host = command(calls("Look"), "PostToolUse", context).await;
    let mut host = host;
    host.prompt("go").await;
    host.result().await;
    assert!(host.api.requests()[1].transcript().contains("and it rains"));

    let mut host = command(calls("Look"), "UserPromptSubmit", "echo it is Sunday").await;
    host.prompt("go").await;
    host.result().await;
    assert!(host.api.requests()[0].transcript().contains("it is Sunday"));
}

#[tokio::test]
async fn a_failed_tool_has_its_own_event() {
    let context = r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"known bug"}}'"#;
    let mut host = command(calls("Break"), "PostToolUseFailure", context).await;
    host.prompt("go").await;
    host.result().await;
    assert!(host.api.requests()[1].transcript().contains("known bug"));
}

#[tokio::test]
async fn a_prompt_can_be_refused_before_the_model_sees_it() {
    let mut host =
        command(Script::new(), "UserPromptSubmit", "echo 'no secrets' >&2; exit 2").await;
    host.prompt("my password is …").await;
    let result = host.result().await;
    assert_eq!(
        (result.result.as_deref(), result.num_turns, result.is_error),
        (Some("no secrets"), 0, false)
    );
    assert!(host.api.requests().is_empty());
}

#[tokio::test]
async fn a_stop_hook_makes_the_model_continue_and_its_next_input_says_so() {
    let script = Script::new()
        .rule(when().prompt_contains("Stop hook feedback"), reply().text("Tested."))
        .rule(when().prompt_contains("tests first"), reply().text("Tested."))
        .rule(when(), reply().text("Done."));
    let once = r#"read -r line; case "$line" in *'"stop_hook_active":true'*) exit 0;; esac
        echo '{"decision":"block","reason":"tests first"}'"#;
    let (text, story) = answered(command(script, "Stop", once).await).await;
    assert_eq!(text, "Tested.");
    assert_eq!(story.iter().filter(|line| line.starts_with("assistant")).count(), 2);
}

#[tokio::test]
async fn continue_false_ends_the_turn_after_the_tool() {
    let host =
        command(calls("Look"), "PreToolUse", r#"echo '{"continue":false,"stopReason":"enough"}'"#)
            .await;
    let (text, story) = answered(host).await;
    assert_eq!(text, "");
    assert!(story.contains(&"user: = saw it".to_owned()), "the tool still runs: {story:?}");
    assert!(!story.iter().any(|line| line.contains(INTERRUPTED_TOOLS)));
}

#[tokio::test]
async fn a_permission_hook_answers_in_the_hosts_place() {
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
        "decision": {"behavior": "deny", "message": "policy"}}});
    let mut host =
        callback(calls("Change"), "PermissionRequest", HookMatcher::default(), Ok(deny)).await;
    // Only the hook is answered; the question to the host stays open until the hook's answer decides.
    let answer = host.answer.take().unwrap();
    host.prompt("go").await;
    loop {
        match host.next().await.unwrap() {
            ToHost::ControlRequest(request)
                if matches!(request.request, AskHost::HookCallback(_)) =>
            {
                host.respond(request.request_id.unwrap(), answer.clone()).await;
                break;
            }
            _ => {}
        }
    }
    assert_eq!(host.result().await.result.as_deref(), Some("Done: policy"));
    assert!(host.story().contains(&"control_cancel_request".to_owned()));
}

#[tokio::test]
async fn a_malformed_hook_starts_no_session() {
    let api = ostler_testkit::ScriptedApi::start(Script::new()).await;
    let mut options = TestHost::options(&api);
    options.hooks = vec![json!({"PreToolUse": [{"matcher": "Bash"}]})];
    assert!(ostler_engine::session::start(options).unwrap_err().contains("PreToolUse"));
}
