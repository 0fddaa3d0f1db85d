//! Hooks for the setup before a session, and for its end.

use ostler_proto::hook::SetupTrigger;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::{HookLog, says, specific};
use crate::host::TestHost;

fn script() -> Script {
    Script::new().rule(when(), reply().text("Done."))
}

#[tokio::test]
async fn setup_hooks_run_before_everything_else_and_receive_the_trigger() {
    for (trigger, word) in
        [(SetupTrigger::Init, "init"), (SetupTrigger::Maintenance, "maintenance")]
    {
        let ledger = HookLog::new();
        let hooks = ledger.hooks(&["SessionStart", "Setup", "UserPromptSubmit"]);
        let mut host = TestHost::with(script(), |options| {
            options.hooks = vec![hooks];
            options.launch.setup = Some(trigger);
        })
        .await;
        host.prompt("go").await;
        host.result().await;
        let entries = ledger.entries();
        let names: Vec<_> = entries.iter().map(|entry| &entry["hook_event_name"]).collect();
        assert_eq!(names, ["Setup", "SessionStart", "UserPromptSubmit"]);
        assert_eq!(entries[0]["trigger"], word);
    }
}

#[tokio::test]
async fn setup_hooks_do_not_run_unless_requested() {
    let ledger = HookLog::new();
    let hooks = ledger.hooks(&["Setup", "Stop"]);
    let mut host = TestHost::with(script(), |options| options.hooks = vec![hooks]).await;
    host.prompt("go").await;
    host.result().await;
    assert_eq!(ledger.entries().len(), 1);
}

#[tokio::test]
async fn a_setup_hook_runs_only_for_the_trigger_of_its_matcher() {
    let ledger = HookLog::new();
    let hook = |file: &str| json!([{"type": "command", "command": ledger.note(file)}]);
    let hooks = json!({"Setup": [
        {"matcher": "init", "hooks": hook("init")},
        {"matcher": "maintenance", "hooks": hook("maintenance")},
    ]});
    let mut host = TestHost::with(script(), |options| {
        options.hooks = vec![hooks];
        options.launch.setup = Some(SetupTrigger::Maintenance);
    })
    .await;
    host.prompt("go").await;
    host.result().await;
    assert!(ledger.has("maintenance") && !ledger.has("init"));
}

#[tokio::test]
async fn setup_hooks_cannot_object_and_their_text_goes_with_the_first_prompt() {
    let context = specific("Setup", json!({"additionalContext": "npm is installed"}));
    let hook = |command: String| json!({"type": "command", "command": command});
    let hooks = json!({"Setup": [{"hooks": [hook(says(&context)), hook("exit 2".to_owned())]}]});
    let mut host = TestHost::with(script(), |options| {
        options.hooks = vec![hooks];
        options.launch.setup = Some(SetupTrigger::Init);
    })
    .await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Done."));
    assert!(host.api.requests()[0].transcript().contains("npm is installed"));
}

#[tokio::test]
async fn a_session_that_only_runs_setup_ends_without_a_prompt() {
    let ledger = HookLog::new();
    let hooks = ledger.hooks(&["Setup", "SessionStart", "SessionEnd", "UserPromptSubmit"]);
    let mut host = TestHost::with(script(), |options| {
        options.hooks = vec![hooks];
        options.launch.setup = Some(SetupTrigger::Init);
        options.launch.only_setup = true;
    })
    .await;
    while host.next().await.is_some() {}
    let entries = ledger.entries();
    let names: Vec<_> = entries.iter().map(|entry| &entry["hook_event_name"]).collect();
    assert_eq!(names, ["Setup", "SessionStart", "SessionEnd"]);
    assert!(host.api.requests().is_empty());
}

#[tokio::test]
async fn a_person_who_leaves_at_the_prompt_is_a_separate_exit_reason() {
    for (is_conversation, reason) in [(true, "prompt_input_exit"), (false, "other")] {
        let ledger = HookLog::new();
        let mut host = TestHost::with(script(), |options| {
            options.hooks = vec![ledger.hooks(&["SessionEnd"])];
            options.is_conversation = is_conversation;
        })
        .await;
        host.prompt("go").await;
        host.result().await;
        host.close();
        while host.next().await.is_some() {}
        assert_eq!(ledger.entries()[0]["reason"], reason);
    }
}

#[tokio::test]
async fn leaving_during_a_turn_has_another_exit_reason_than_leaving_at_the_prompt() {
    let ledger = HookLog::new();
    let held = Script::new().rule(when(), reply().text("Done.").hold("answer"));
    let mut host = TestHost::with(held, |options| {
        options.hooks = vec![ledger.hooks(&["SessionEnd"])];
        options.is_conversation = true;
    })
    .await;
    host.prompt("go").await;
    host.until("system init").await;
    host.close();
    host.api.gate("answer").release();
    while host.next().await.is_some() {}
    assert_eq!(ledger.entries()[0]["reason"], "other");
}
