//! Hooks that replace the displayed text of the model.

use ostler_engine::store::{LineContext, Projects, SessionStart};
use ostler_proto::api::{Delta, StreamEvent};
use ostler_proto::frame::ToHost;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::{HookLog, callback, command, matcher, next_callback, says, specific};
use crate::host::TestHost;

fn script() -> Script {
    Script::new()
        .rule(
            when().turn(0),
            reply().text_pieces(["secret"]).tool_use("Look", json!({"word": "it"})),
        )
        .rule(when(), reply().text_pieces(["the ", "secret ", "again"]))
}

fn replacing() -> String {
    says(&specific("MessageDisplay", json!({"displayContent": "***"})))
}

/// The texts of the deltas.
fn pieces(host: &TestHost) -> Vec<String> {
    let text = |frame: &ToHost| match frame {
        ToHost::StreamEvent(event) => match &event.event {
            StreamEvent::ContentBlockDelta(delta) => match &delta.delta {
                Delta::TextDelta(delta) => Some(delta.text.clone()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    host.seen.iter().filter_map(text).collect()
}

#[tokio::test]
async fn the_user_sees_the_replacement_and_the_model_and_the_file_keep_the_original() {
    let root = tempfile::tempdir().unwrap();
    let scene =
        LineContext { cwd: root.path().to_owned(), version: "1".to_owned(), entrypoint: None };
    let opened = Projects::new(root.path()).open(scene, &SessionStart::default()).unwrap();
    let file = opened.writer.path().to_owned();
    let hooks =
        json!({"MessageDisplay": [{"hooks": [{"type": "command", "command": replacing()}]}]});
    let mut host = TestHost::with(script(), |options| {
        options.hooks = vec![hooks];
        options.launch.output.partial_messages = true;
        options.opened = Some(opened);
    })
    .await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.as_deref(), Some("***"));
    assert_eq!(pieces(&host), ["***", "***"]);
    let story = host.story();
    assert!(story.contains(&"assistant: ***".to_owned()), "{story:?}");
    assert!(!story.iter().any(|line| line.contains("secret")), "{story:?}");
    assert!(host.api.requests()[1].transcript().contains("secret"));
    assert!(std::fs::read_to_string(file).unwrap().contains("secret"));
}

#[tokio::test]
async fn hooks_receive_every_text_once_and_complete() {
    let ledger = HookLog::new();
    let hooks = ledger.hooks(&["MessageDisplay", "Stop"]);
    let mut host = TestHost::with(script(), |options| {
        options.hooks = vec![hooks];
        options.launch.output.partial_messages = true;
    })
    .await;
    host.prompt("go").await;
    assert_eq!(host.result().await.result.as_deref(), Some("the secret again"));
    assert_eq!(pieces(&host), ["secret", "the secret again"], "withheld until hooks have seen it");
    let entries = ledger.entries();
    let [first, second, stop] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((&first["delta"], &second["delta"]), (&json!("secret"), &json!("the secret again")));
    for entry in [first, second] {
        assert_eq!((&entry["index"], &entry["final"]), (&json!(0), &json!(true)));
        assert!(entry["turn_id"].is_string() && entry.get("permission_mode").is_none());
    }
    assert_eq!(first["turn_id"], second["turn_id"]);
    assert_ne!(first["message_id"], second["message_id"]);
    assert_eq!(stop["last_assistant_message"], "the secret again");
}

#[tokio::test]
async fn without_hooks_the_deltas_are_sent_unchanged() {
    let mut host =
        TestHost::with(script(), |options| options.launch.output.partial_messages = true).await;
    host.prompt("go").await;
    host.result().await;
    assert_eq!(pieces(&host), ["secret", "the ", "secret ", "again"]);
}

#[tokio::test]
async fn if_a_hook_fails_the_original_is_shown() {
    for command_line in ["exit 2", "exit 1", "echo '{broken'"] {
        let mut host = command(script(), "MessageDisplay", command_line).await;
        host.prompt("go").await;
        let result = host.result().await;
        assert_eq!(result.result.as_deref(), Some("the secret again"), "{command_line}");
    }
}

#[tokio::test]
async fn an_interruption_does_not_wait_for_a_display_hook() {
    let mut host = callback(script(), "MessageDisplay", matcher(json!({})), Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    next_callback(&mut host).await;
    host.interrupt().await;
    host.result().await;
}

#[tokio::test]
async fn display_hooks_do_not_run_for_the_text_of_a_subagent() {
    let ledger = HookLog::new();
    let work = json!({"description": "d", "prompt": "subwork"});
    let script = Script::new()
        .rule(when().prompt_contains("subwork"), reply().text("Sub."))
        .rule(when().turn(0), reply().tool_use("Agent", work))
        .rule(when(), reply().text("Done."));
    let hooks = ledger.hooks(&["MessageDisplay"]);
    let mut host = TestHost::with(script, |options| options.hooks = vec![hooks]).await;
    host.prompt("go").await;
    host.result().await;
    let deltas: Vec<_> = ledger.entries().iter().map(|entry| entry["delta"].clone()).collect();
    assert_eq!(deltas, ["Done."]);
}
