//! Hooks that misbehave: they print too much, answer wrongly, or do not read their input.

use ostler_proto::frame::ToHost;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::{HookLog, calls, command, says, specific};
use crate::host::TestHost;

fn done() -> Script {
    Script::new().rule(when(), reply().text("Done."))
}

async fn result(host: &mut TestHost, prompt: &str) -> String {
    host.prompt(prompt).await;
    host.result().await.result.unwrap_or_default()
}

#[tokio::test]
async fn a_hook_need_not_read_its_input() {
    // Far more than a pipe holds, so that the engine is still writing when the hook no longer reads.
    let prompt = "x".repeat(4 * 1024 * 1024);
    for (command_line, answer) in
        [("exec <&-; exit 0", "Done."), ("exec <&-; echo no >&2; exit 2", "no"), ("true", "Done.")]
    {
        let mut host = command(done(), "UserPromptSubmit", command_line).await;
        assert_eq!(result(&mut host, &prompt).await, answer, "{command_line}");
        let remarks = host.story().iter().filter(|line| line.contains("informational")).count();
        assert_eq!(remarks, usize::from(answer == "no"), "{command_line}: no complaint about it");
    }
}

#[tokio::test]
async fn output_need_not_be_text() {
    let mut host = command(done(), "UserPromptSubmit", r"printf '\377\376 it rains'").await;
    assert_eq!(result(&mut host, "go").await, "Done.");
    assert!(host.api.requests()[0].transcript().contains("it rains"));
    let mut host = command(calls("Look"), "PreToolUse", r"printf '\377' >&2; exit 2").await;
    assert!(result(&mut host, "go").await.contains("PreToolUse:Look hook error: \u{fffd}"));
}

#[tokio::test]
async fn huge_output_is_cut_and_the_hook_runs_to_its_end() {
    let ledger = HookLog::new();
    let after = ledger.path("after").display().to_string();
    let much = format!("head -c 40000000 /dev/zero | tr '\\0' x; touch {after}");
    let mut host = command(done(), "UserPromptSubmit", &much).await;
    assert_eq!(result(&mut host, "go").await, "Done.");
    assert!(ledger.has("after"));
    let sent = json!(host.api.requests()[0].messages()).to_string();
    assert!(sent.len() < 20_000, "{}", sent.len());
    assert!(sent.contains("the whole is in /"), "the cut text says where the whole is");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_an_answer() {
    let much = "printf '{\"reason\": \"'; head -c 2000000 /dev/zero | tr '\\0' x; printf '\"}'";
    let mut host = command(calls("Look"), "PreToolUse", much).await;
    assert!(result(&mut host, "go").await.contains("malformed"));
}

#[tokio::test]
async fn an_answer_with_a_field_of_the_wrong_type_is_malformed() {
    let odd = [
        json!({"continue": "no"}),
        json!({"decision": 3}),
        json!({"systemMessage": {"text": "hm"}}),
        json!({"hookSpecificOutput": "allow"}),
        specific("PreToolUse", json!({"permissionDecisionReason": 3})),
    ];
    for answer in odd {
        let mut host = command(calls("Look"), "PreToolUse", &says(&answer)).await;
        let text = result(&mut host, "go").await;
        assert!(text.contains("malformed"), "a guard denies: {answer}: {text}");
        let mut host = command(calls("Look"), "PostToolUse", &says(&answer)).await;
        assert_eq!(result(&mut host, "go").await, "Done: saw it", "{answer}");
        assert!(host.story().contains(&"system informational".to_owned()), "{answer}");
    }
}

#[tokio::test]
async fn an_answer_for_another_event_does_not_count() {
    let deny = json!({"permissionDecision": "deny"});
    for answer in [
        specific("PermissionRequest", json!({"decision": {"behavior": "deny"}})),
        json!({"hookSpecificOutput": deny}),
        specific("Stop", deny.clone()),
    ] {
        let mut host = command(calls("Look"), "PreToolUse", &says(&answer)).await;
        let text = result(&mut host, "go").await;
        assert!(text.contains("`hookEventName`"), "{answer}: {text}");
    }
}

#[tokio::test]
async fn a_denial_may_end_the_turn() {
    let mut answer = specific("PreToolUse", json!({"permissionDecision": "deny"}));
    answer["continue"] = json!(false);
    let mut host = command(calls("Look"), "PreToolUse", &says(&answer)).await;
    assert_eq!(result(&mut host, "go").await, "");
    assert_eq!(host.api.requests().len(), 1, "the model is not asked again");
}

#[tokio::test]
async fn an_answer_counts_whatever_the_exit_code() {
    let deny = specific(
        "PreToolUse",
        json!({"permissionDecision": "deny", "permissionDecisionReason": "no"}),
    );
    for code in [0, 1, 2, 7] {
        let line = format!("{}; exit {code}", says(&deny));
        let mut host = command(calls("Look"), "PreToolUse", &line).await;
        let text = result(&mut host, "go").await;
        assert_eq!(text, "Done: PreToolUse:Look hook error: no", "{code}");
    }
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    let line = format!("{}; echo but no >&2; exit 2", says(&allow));
    let mut host = command(calls("Look"), "PreToolUse", &line).await;
    assert_eq!(result(&mut host, "go").await, "Done: PreToolUse:Look hook error: but no");
}

#[tokio::test]
async fn a_hook_in_the_background_wakes_the_model_when_it_objects() {
    let ledger = HookLog::new();
    let gate = ledger.pipe("gate");
    let wait = format!("cat {} > /dev/null; echo tests fail >&2; exit 2", gate.display());
    let hook = json!({"type": "command", "command": wait, "asyncRewake": true});
    let script = Script::new()
        .rule(when().prompt_contains("tests fail"), reply().text("Mended."))
        .rule(when().turn(0), reply().tool_use("Look", json!({"word": "it"})))
        .rule(when(), reply().text("Done."));
    let hooks = json!({"PostToolUse": [{"hooks": [hook]}]});
    let mut host = TestHost::with(script, |options| options.hooks = vec![hooks]).await;
    assert_eq!(result(&mut host, "go").await, "Done.");
    // There is no prompt; the hook ends now.
    tokio::task::spawn_blocking(move || std::fs::write(gate, "go on")).await.unwrap().unwrap();
    assert_eq!(host.result().await.result.as_deref(), Some("Mended."));
    let last: Value = host.api.requests().last().unwrap().messages().last().unwrap().clone();
    assert!(last.to_string().contains("PostToolUse hook feedback"), "{last}");
}

#[tokio::test]
async fn a_hook_in_the_background_that_does_not_object_starts_no_turn() {
    let ledger = HookLog::new();
    let hook = |line: String| json!({"type": "command", "command": line, "asyncRewake": true});
    let ended = ledger.pipe("ended");
    let line = format!("echo fine > {}", ended.display());
    let hooks = json!({"Stop": [{"hooks": [hook(line)]}]});
    let mut host = TestHost::with(done(), |options| options.hooks = vec![hooks]).await;
    assert_eq!(result(&mut host, "go").await, "Done.");
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(ended)).await;
    assert_eq!(read.unwrap().unwrap(), "fine\n");
    host.close();
    while let Some(frame) = host.next().await {
        assert!(!matches!(frame, ToHost::Result(_)), "{frame:?}");
    }
}

#[tokio::test]
async fn a_stop_hook_that_always_objects_does_not_continue_a_turn_for_ever() {
    let mut host = command(done(), "Stop", "echo more >&2; exit 2").await;
    assert_eq!(result(&mut host, "go").await, "Done.");
    assert_eq!(host.api.requests().len(), 9, "the first answer, and eight more");
    assert!(host.story().contains(&"system informational".to_owned()));
}
