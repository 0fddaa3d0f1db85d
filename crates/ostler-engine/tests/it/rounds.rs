//! The decision table of a turn, continued: counting, limits and the result frame.

use std::time::Duration;

use ostler_proto::frame::ToHost;
use ostler_testkit::{Script, Usage, reply, when};
use serde_json::json;

use crate::host::TestHost;

#[tokio::test]
async fn a_tool_runs_while_the_response_still_streams() {
    let call = reply().tool_use("Look", json!({"word": "it"})).text_pieces(["and so on"]);
    // `message_start`, the call in a few events, and the beginning of the text.
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("Seen."))
        .rule(when(), call.gate(9, "half"));
    let mut host = TestHost::start(script).await;
    host.prompt("go").await;
    host.until("user: = saw it").await;
    // The response is not complete: its rest waits at the gate.
    host.api.gate("half").reached().await;
    host.api.gate("half").release();
    host.until("assistant: and so on").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Seen."));
}

#[tokio::test]
async fn a_round_is_one_request_and_user_messages_are_counted() {
    let two = reply().tool_use("Look", json!({"word": "a"})).tool_use("Look", json!({"word": "b"}));
    let script =
        Script::new().rule(when().has_tool_result(true), reply().text("Seen.")).rule(when(), two);
    let mut host = TestHost::start(script).await;
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!(result.num_turns, 3, "the prompt and two results");
    assert_eq!(host.api.requests().len(), 2);
}

#[tokio::test]
async fn a_turn_ends_when_a_budget_is_reached() {
    let script = || {
        let spend = reply()
            .model("claude-opus-4-5")
            .tool_use("Look", json!({"word": "x"}))
            .usage(Usage::tokens(900, 100));
        Script::new().rule(when().has_tool_result(true), reply().text("Done.")).rule(when(), spend)
    };
    let mut host = TestHost::with(script(), |options| options.max_tokens = Some(1000)).await;
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!(result.errors.unwrap(), ["Reached maximum number of tokens (1000)"]);
    let dollars = result.total_cost_usd.get();
    let mut host =
        TestHost::with(script(), |options| options.launch.limits.max_budget_usd = Some(dollars))
            .await;
    host.prompt("go").await;
    assert_eq!(host.result().await.subtype.as_str(), "error_max_budget_usd");
    let mut host = TestHost::with(script(), |options| {
        options.max_tokens = Some(1001);
        options.launch.limits.max_budget_usd = Some(dollars * 1.1);
    })
    .await;
    host.prompt("go").await;
    host.until("user: = saw x").await;
    host.result().await;
}

#[tokio::test]
async fn a_call_that_a_limit_stops_has_a_result_that_names_the_limit() {
    let call = || reply().tool_use("Hang", json!({"word": "on"})).usage(Usage::tokens(900, 100));
    let script = || {
        Script::new()
            .rule(when().prompt_contains("again"), reply().text("Here."))
            .rule(when(), call())
    };
    let limit = Duration::from_millis(300);
    let mut host = TestHost::with(script(), |options| options.timeout = Some(limit)).await;
    host.prompt("go").await;
    host.until("user: failed: Deadline exceeded").await;
    assert_eq!(host.result().await.errors.unwrap(), ["Reached the time limit (0.3 s)"]);
    let mut host = TestHost::with(script(), |options| options.max_tokens = Some(10)).await;
    host.prompt("go").await;
    host.until("user: failed: Token budget exhausted").await;
    assert_eq!(host.result().await.permission_denials.len(), 0);
    host.prompt("again").await;
    host.result().await;
}

#[tokio::test]
async fn a_stop_hook_that_ends_the_turn_ends_it_with_success() {
    let output = r#"{"continue": false, "decision": "block", "reason": "go on"}"#;
    let command = format!("echo '{output}'");
    let hooks = json!({"Stop": [{"hooks": [{"type": "command", "command": command}]}]});
    let script = Script::new().rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| options.hooks = vec![hooks]).await;
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!((result.subtype.as_str(), result.is_error), ("success", false));
    assert_eq!(host.api.requests().len(), 1);
}

#[tokio::test]
async fn a_result_counts_everything_including_subagents() {
    let task = json!({"description": "help", "prompt": "sub: help"});
    let script = Script::new()
        .rule(
            when().prompt_contains("sub:"),
            reply().model("claude-haiku-4-5").text("Helped.").usage(Usage::tokens(1000, 10)),
        )
        .rule(
            when().has_tool_result(true),
            reply().model("claude-opus-4-5").text("Done.").usage(Usage::tokens(300, 3)),
        )
        .rule(
            when(),
            reply()
                .model("claude-opus-4-5")
                .tool_use("Agent", task)
                .usage(Usage::tokens(200, 2))
                .delay_before_first_byte_ms(20),
        );
    let mut host = TestHost::start(script).await;
    host.prompt("go").await;
    let result = host.result().await;
    let tokens = |model: &str| {
        let usage = &result.model_usage[model];
        (usage.input_tokens, usage.output_tokens)
    };
    assert_eq!(tokens("claude-opus-4-5"), (500, 5));
    assert_eq!(tokens("claude-haiku-4-5"), (1000, 10));
    assert_eq!(result.usage.input_tokens, Some(500), "the main conversation's own");
    let sum: f64 = result.model_usage.values().map(|usage| usage.cost_usd.get()).sum();
    assert!(sum > 0.0 && (result.total_cost_usd.get() - sum).abs() < 1e-12);
    assert_eq!(result.num_turns, 2);
    assert!(result.duration_api_ms.get() >= 20.0 && result.duration_ms.get() >= 20.0);
}

#[tokio::test]
async fn every_frame_names_the_session_of_init() {
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("Done."))
        .rule(when(), reply().tool_use("Look", json!({"word": "x"})));
    let mut host =
        TestHost::with(script, |options| options.launch.output.partial_messages = true).await;
    host.prompt("go").await;
    host.result().await;
    let ids: Vec<_> = host
        .seen
        .iter()
        .filter(|frame| !matches!(frame, ToHost::ControlRequest(_) | ToHost::ControlResponse(_)))
        .map(|frame| serde_json::to_value(frame).unwrap()["session_id"].clone())
        .collect();
    assert!(ids.len() > 5 && ids[0].as_str().is_some_and(|id| !id.is_empty()));
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test]
async fn an_empty_prompt_is_answered_too() {
    let script = Script::new().rule(when(), reply().text("Yes?"));
    let mut host = TestHost::start(script).await;
    for prompt in ["", " \n"] {
        host.prompt(prompt).await;
        assert_eq!(host.result().await.result.as_deref(), Some("Yes?"));
    }
}
