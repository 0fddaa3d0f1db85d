//! The decision table of a turn, one row per test, against the scripted API.

use std::time::Duration;

use ostler_engine::turn::{GO_ON, SAY_SOMETHING};
use ostler_testkit::{Action, Script, ToolUse, Usage, reply, when};
use serde_json::json;

use crate::host::TestHost;
use crate::model::assert_stable_prefix;

#[tokio::test]
async fn a_cut_answer_is_continued_and_the_user_sees_why() {
    let script = Script::new()
        .rule(when().turn(0), reply().text("First half").stop_reason("max_tokens"))
        .rule(when().turn(1), reply().text("second half."));
    let mut host = TestHost::start(script).await;
    host.prompt("long").await;
    let result = host.result().await;
    assert_eq!(result.result.as_deref(), Some("second half."));
    assert_eq!(result.num_turns, 2);
    assert!(
        host.api.requests()[1].transcript().contains("Go on exactly where it ended"),
        "{GO_ON}"
    );
}

#[tokio::test]
async fn an_answer_that_is_cut_again_and_again_is_an_error() {
    let script = Script::new().rule(when(), reply().text("part").stop_reason("max_tokens"));
    let mut host = TestHost::start(script).await;
    host.prompt("long").await;
    let result = host.result().await;
    assert!(result.is_error);
    assert_eq!(host.api.requests().len(), 4);
    assert!(host.story().iter().any(|line| line.starts_with("assistant: The answer was longer")));
}

#[tokio::test]
async fn a_refusal_is_an_error_with_a_text() {
    let script = Script::new().rule(when(), reply().text("I will not.").stop_reason("refusal"));
    let mut host = TestHost::start(script).await;
    host.prompt("bad").await;
    let result = host.result().await;
    assert_eq!(
        (result.is_error, result.result.as_deref()),
        (true, Some("The model declined to answer this."))
    );
}

#[tokio::test]
async fn a_paused_answer_is_sent_back_without_added_text() {
    let script = Script::new()
        .rule(when().turn(0), reply().text("Searching").stop_reason("pause_turn"))
        .rule(when().turn(1), reply().text("Found."));
    let mut host = TestHost::start(script).await;
    host.prompt("search").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Found."));
    let messages = host.api.requests()[1].messages().len();
    assert_eq!(messages, 2, "the prompt and the paused answer, nothing else");
}

#[tokio::test]
async fn an_empty_answer_is_asked_about_once() {
    let script = Script::new()
        .rule(when().prompt_contains("empty"), reply().text("Here it is."))
        .rule(when(), reply());
    let mut host = TestHost::start(script).await;
    host.prompt("say").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Here it is."), "{SAY_SOMETHING}");
    let mut host = TestHost::start(Script::new().rule(when(), reply())).await;
    host.prompt("say").await;
    assert_eq!(host.result().await.result.as_deref(), Some(""));
    assert_eq!(host.api.requests().len(), 2);
}

#[tokio::test]
async fn a_token_budget_ends_the_turn_without_running_the_call() {
    let spend = reply().tool_use("Change", json!({"word": "x"})).usage(Usage::tokens(900, 200));
    let mut host = TestHost::with(Script::new().rule(when(), spend), |options| {
        options.max_tokens = Some(1000)
    })
    .await;
    host.prompt("spend").await;
    let result = host.result().await;
    assert_eq!(result.errors.unwrap(), ["Reached maximum number of tokens (1000)"]);
    assert_eq!(result.subtype.as_str(), "error_max_budget_usd");
    assert_eq!(result.extra.get("limit_reached"), Some(&json!("tokens")));
    assert_eq!(host.api.requests().len(), 1);
    assert!(!host.story().iter().any(|line| line.contains("changed x")));
}

#[tokio::test]
async fn a_deadline_ends_a_turn_that_hangs() {
    let script = Script::new().rule(when(), reply().text("never").stall(1));
    let limit = Duration::from_millis(50);
    let mut host = TestHost::with(script, |options| options.timeout = Some(limit)).await;
    host.prompt("wait").await;
    let result = host.result().await;
    assert_eq!(result.errors.unwrap(), ["Reached the time limit (0.05 s)"]);
    assert_eq!(result.subtype.as_str(), "error_during_execution", "time is not a budget");
    assert_eq!(result.extra.get("limit_reached"), Some(&json!("time")));
}

#[tokio::test]
async fn tools_of_a_stream_that_breaks_still_count() {
    let broken = reply()
        .block(ToolUse::new("Look", json!({"word": "it"})).split(1).into())
        .text("and then")
        // The call is complete after five events; the text after it never comes.
        .interrupt(6, Action::Cut);
    let script = Script::new()
        .rule(when().turn(0), broken)
        .rule(when().has_tool_result(true), reply().text("Done: {{tool_result}}"));
    let mut host = TestHost::start(script).await;
    host.prompt("look").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Done: saw it"), "{:?}", host.story());
}

#[tokio::test]
async fn reads_run_in_parallel_and_results_keep_their_order() {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply()
                .tool_use("Look", json!({"word": "a"}))
                .tool_use("Look", json!({"word": "b"}))
                .tool_use("Look", json!({"word": "c"})),
        )
        .rule(when().turn(1), reply().text("Seen."));
    let mut host = TestHost::start(script).await;
    host.prompt("look").await;
    host.result().await;
    let requests = host.api.requests();
    let results: Vec<_> =
        requests[1].tool_results().into_iter().map(|result| result.text).collect();
    assert_eq!(results, ["saw a", "saw b", "saw c"]);
}

#[tokio::test]
async fn every_request_begins_with_the_bytes_of_the_one_before() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Look", json!({"word": "a"})))
        .rule(when().turn(1), reply().tool_use("Look", json!({"word": "b"})))
        .rule(when(), reply().text("Done."));
    let mut host = TestHost::start(script).await;
    host.prompt("one").await;
    host.result().await;
    host.prompt("two").await;
    host.result().await;
    let bodies: Vec<_> = host.api.requests().iter().map(|request| request.body.clone()).collect();
    assert_stable_prefix(&bodies);
}

#[tokio::test]
async fn a_dollar_budget_counts_the_cost_of_the_model() {
    let spend = reply()
        .model("claude-opus-4-5")
        .tool_use("Look", json!({"word": "x"}))
        .usage(Usage::tokens(1_000_000, 10));
    let mut host = TestHost::with(Script::new().rule(when(), spend), |options| {
        options.launch.limits.max_budget_usd = Some(0.5)
    })
    .await;
    host.prompt("spend").await;
    let result = host.result().await;
    assert_eq!(result.subtype.as_str(), "error_max_budget_usd");
    assert_eq!(result.errors.unwrap(), ["Reached maximum budget ($0.5)"]);
    assert!(result.total_cost_usd.get() > 0.5, "{:?}", result.model_usage);
    assert_eq!(host.api.requests().len(), 1);
}
