//! How runs end, and how long threads are kept.

use std::time::Duration;

use ostler_agui::event::Body;
use ostler_server::agui::{Busy, Disconnect};
use ostler_server::config::Config;
use ostler_testkit::{Script, Status, reply as model, when};
use serde_json::json;

use super::stage::*;

fn held() -> Script {
    Script::new()
        .rule(when().prompt_contains("hi"), model().text("Hello"))
        .rule(
            when().prompt_contains("slow"),
            model().text_pieces(["be", "gun", " done"]).gate(3, "half"),
        )
        .rule(when(), model().text("Hello"))
}

/// A run that has begun to answer and is held in the middle.
async fn halfway(stage: &Stage, run: &str) -> Events {
    let mut events = stage.begin(&input(run, &[user("u1", "slow")])).await;
    events.until(|event| matches!(event.body, Body::TextMessageContent { .. })).await;
    events
}

#[tokio::test]
async fn a_stopped_run_is_closed_and_cancelled_and_the_thread_continues() {
    let stage = Stage::new(held()).await;
    let events = halfway(&stage, "r1").await;
    assert_eq!(stage.stop("t").await, json!({"stopped": true}));
    let events = events.rest().await;
    assert_eq!(outcome(&events), "cancelled");
    assert!(kinds(&events).contains(&"TEXT_MESSAGE_END".to_owned()));
    let next =
        stage.run(&input("r2", &[user("u1", "slow"), reply("a1", "be"), user("u2", "hi")])).await;
    assert_eq!((text_of(&next).as_str(), outcome(&next).as_str()), ("Hello", "success"));
    assert_eq!(stage.stop("t").await, json!({"stopped": false}));
}

#[tokio::test]
async fn an_old_client_receives_a_stop_as_an_error() {
    let stage = Stage::new(held()).await;
    let mut body = input("r1", &[user("u1", "slow")]);
    body.as_object_mut().unwrap().remove("protocolVersion");
    let mut events = stage.begin(&body).await;
    events.until(|event| matches!(event.body, Body::TextMessageContent { .. })).await;
    stage.stop("t").await;
    let events = events.rest().await;
    assert_eq!(outcome(&events), "error cancelled: the run was stopped: interrupted");
}

#[tokio::test]
async fn a_run_continues_when_its_client_disconnects() {
    let stage = Stage::new(held()).await;
    drop(halfway(&stage, "r1").await);
    let next =
        stage.begin(&input("r2", &[user("u1", "slow"), reply("x", "be"), user("u2", "hi")])).await;
    stage.api.gate("half").release();
    assert_eq!(text_of(&next.rest().await), "Hello", "the next run waits for it");
    let last = stage.api.requests().pop().unwrap();
    assert!(last.body["messages"].to_string().contains("begun done"), "the first run finished");
}

#[tokio::test]
async fn a_run_can_be_configured_to_stop_when_its_client_disconnects() {
    let stage = Stage::with(held(), |config| config.agui.disconnect = Disconnect::Stop).await;
    drop(halfway(&stage, "r1").await);
    let next =
        stage.run(&input("r2", &[user("u1", "slow"), reply("x", "be"), user("u2", "hi")])).await;
    assert_eq!(text_of(&next), "Hello", "although the gate stayed closed");
}

#[tokio::test]
async fn a_failed_model_request_is_an_error_with_a_code_and_not_a_reply() {
    let refused =
        model().status(Status::new(400).error_type("invalid_request_error").message("too odd"));
    let script = Script::new()
        .rule(when().prompt_contains("odd"), refused)
        .rule(when(), model().text("Hello"));
    let stage = Stage::new(script).await;
    let events = stage.run(&input("r1", &[user("u1", "odd")])).await;
    let end = end_of(&events);
    assert_eq!(end["type"], "RUN_ERROR");
    assert!(end["message"].as_str().unwrap().contains("too odd"), "{end}");
    let code = end["code"].as_str().unwrap();
    assert!(!code.is_empty() && code != "unknown", "{end}");
    assert_eq!(text_of(&events), "", "the error is not sent as a reply");
    let next = stage.run(&input("r2", &[user("u1", "odd"), user("u2", "hi")])).await;
    assert_eq!(text_of(&next), "Hello");
}

#[tokio::test]
async fn a_run_over_the_time_limit_is_ended() {
    let stage =
        Stage::with(held(), |config| config.limits.run = Some(Duration::from_millis(300))).await;
    let events = stage.run(&input("r1", &[user("u1", "slow")])).await;
    assert!(outcome(&events).starts_with("error timeout"), "{}", outcome(&events));
    let next = stage.run(&input("r2", &[user("u1", "slow"), user("u2", "hi")])).await;
    assert_eq!(text_of(&next), "Hello");
}

#[tokio::test]
async fn clients_are_notified_when_the_server_shuts_down() {
    let stage = Stage::new(held()).await;
    let events = halfway(&stage, "r1").await;
    stage.shutdown.cancel();
    assert!(outcome(&events.rest().await).starts_with("error shutdown"));
}

#[tokio::test]
async fn a_second_run_waits_for_the_first_or_is_refused() {
    let stage = Stage::with(held(), |config| config.agui.busy = Busy::Refuse).await;
    let first = halfway(&stage, "r1").await;
    let body = input("r2", &[user("u1", "slow"), user("u2", "hi")]);
    assert_eq!(stage.post("ann", &body).await.status(), 409);
    stage.api.gate("half").release();
    assert_eq!(text_of(&first.rest().await), "gun done");

    let stage =
        Stage::with(held(), |config| config.agui.busy = Busy::Wait(Duration::from_millis(50)))
            .await;
    let _first = halfway(&stage, "r1").await;
    let events = stage.run(&body).await;
    assert!(outcome(&events).starts_with("error run_in_progress"), "{}", outcome(&events));
}

// Seen to fail when threads are found by their id alone, without the caller.
#[tokio::test]
async fn threads_of_different_callers_with_the_same_id_are_separate() {
    let script = Script::new().rule(when(), model().text("{{prompt}}"));
    let stage = Stage::new(script).await;
    stage.run(&input("r1", &[user("u1", "the secret")])).await;
    let bobs = stage.begin_as("bob", &input("r2", &[user("u2", "hi")])).await.rest().await;
    assert_eq!(text_of(&bobs), "hi");
    let requests = stage.api.requests();
    assert!(!requests[1].body.to_string().contains("the secret"));
}

#[tokio::test]
async fn many_threads_do_not_receive_each_others_messages() {
    let stage = Stage::new(Script::new().rule(when(), model().text("re {{prompt}}"))).await;
    let runs = (0..20).map(|number| {
        let body = input("r1", &[user("u1", &format!("question {number}"))]);
        let body = with(body, "threadId", json!(format!("thread {number} 🧵")));
        let stage = &stage;
        async move {
            let events = stage.run(&body).await;
            assert_eq!(text_of(&events), format!("re question {number}"));
        }
    });
    futures::future::join_all(runs).await;
}

#[tokio::test]
async fn an_idle_thread_has_no_engine_and_continues_with_a_new_one() {
    let stage = Stage::with(held(), |config| config.limits.idle = Duration::from_millis(20)).await;
    stage.run(&input("r1", &[user("u1", "hi")])).await;
    stage.rests(0).await;
    let history = [user("u1", "hi"), reply("a1", "Hello"), user("u2", "still there?")];
    let events = stage.run(&input("r2", &history)).await;
    assert_eq!(outcome(&events), "success");
    assert_eq!(
        stage.api.requests().pop().unwrap().messages().len(),
        3,
        "it knows the conversation"
    );
}

#[tokio::test]
async fn the_engine_of_a_thread_that_waits_for_an_answer_is_kept() {
    let script = Script::new()
        .rule(when().has_tool_result(true), model().text("{{tool_result}}"))
        .rule(when(), model().tool_use("mcp__ag_ui__paint", json!({})));
    let stage = Stage::with(script, |config| config.limits.idle = Duration::from_millis(20)).await;
    let tools = json!([tool("paint")]);
    let other = with(input("r0", &[user("u1", "hi")]), "threadId", json!("other"));
    stage.run(&other).await;
    let first = stage.run(&with(input("r1", &[user("u1", "paint")]), "tools", tools.clone())).await;
    stage.rests(1).await;
    let messages = [user("u1", "paint"), answer("t1", &calls(&first)[0].0, json!("red"))];
    let second = stage.run(&with(input("r2", &messages), "tools", tools)).await;
    assert_eq!(text_of(&second), "red");
}

#[tokio::test]
async fn thoughts_have_signatures_and_may_be_sent_back() {
    let script = Script::new()
        .rule(when().turn(0), model().thinking("Hm", "c2lnbmVk").text("Yes"))
        .rule(when(), model().text("Still yes"));
    let thinks = |config: &mut Config| {
        config.env.insert("MAX_THINKING_TOKENS".to_owned(), "2000".to_owned());
    };
    let stage = Stage::with(script, thinks).await;
    let events = stage.run(&input("r1", &[user("u1", "hi")])).await;
    let Some(Body::ReasoningEncryptedValue { entity_id, encrypted_value, .. }) = events
        .iter()
        .map(|event| &event.body)
        .find(|it| matches!(it, Body::ReasoningEncryptedValue { .. }))
    else {
        panic!("{events:#?}")
    };
    assert_eq!(encrypted_value, "c2lnbmVk");
    let thought = json!({"id": entity_id, "role": "reasoning", "content": "Hm", "encryptedValue": "c2lnbmVk"});
    let history = [user("u1", "hi"), thought, reply("a1", "Yes"), user("u2", "sure?")];
    let next = stage.run(&input("r2", &history)).await;
    assert_eq!(text_of(&next), "Still yes");
}

#[tokio::test]
async fn the_usage_of_subagents_is_counted_once() {
    let script = Script::new()
        .rule(when().prompt_contains("dig"), model().text("dug").usage(ostler_testkit::Usage::tokens(100, 10)))
        .rule(when().has_tool_result(true), model().text("done").usage(ostler_testkit::Usage::tokens(20, 2)))
        .rule(
            when(),
            model()
                .tool_use("Agent", json!({"description": "d", "prompt": "dig", "subagent_type": "general-purpose"}))
                .usage(ostler_testkit::Usage::tokens(3, 1)),
        );
    let stage = Stage::new(script).await;
    let events = stage.run(&input("r1", &[user("u1", "go")])).await;
    let usage = &end_of(&events)["usage"];
    assert_eq!(
        (&usage[0]["inputTokens"], &usage[0]["outputTokens"]),
        (&json!(123), &json!(13)),
        "{usage}"
    );
    assert!(kinds(&events).contains(&"SUBAGENT_FINISHED".to_owned()));
}
