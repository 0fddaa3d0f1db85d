//! Which rule answers: order, limits, sequences, and many concurrent conversations.

use ostler_testkit::{Rule, Script, ScriptedApi, Status, reply, when};
use serde_json::{Value, json};

use crate::support::{accumulate, after_tool, ask, message, parse_events, send, streamed};

fn text(message: &Value) -> &str {
    message["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {message}"))
}

#[tokio::test]
async fn the_first_rule_that_matches_answers() {
    let script = Script::new()
        .rule(when().prompt_contains("tea"), reply().text("tea"))
        .rule(when().model("claude-t*").streaming(false), reply().text("other"))
        .rule(when(), reply().text("never"));
    let server = ScriptedApi::start(script).await;
    assert_eq!(text(&message(&server, &ask("make tea")).await), "tea");
    assert_eq!(text(&message(&server, &ask("make coffee")).await), "other");
    let rules: Vec<_> = server.requests().iter().map(|request| request.rule).collect();
    assert_eq!(rules, [Some(0), Some(1)]);
    assert_eq!(server.unused_rules(), [2]);
}

#[tokio::test]
async fn a_rule_that_is_used_up_lets_the_next_one_answer() {
    let script = Script::new()
        .with(Rule::new(when(), reply().text("twice")).times(2))
        .with(Rule::new(when(), reply().text("then")).named("after"));
    let server = ScriptedApi::start(script).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(text(&message(&server, &ask("hi")).await).to_owned());
    }
    assert_eq!(answers, ["twice", "twice", "then"]);
    assert_eq!(server.requests()[2].rule_name.as_deref(), Some("after"));
}

#[tokio::test]
async fn a_sequence_of_replies_is_used_in_order() {
    let script =
        Script::new().rule(when(), [reply().status(Status::new(529)), reply().text("fine")]);
    let server = ScriptedApi::start(script).await;
    assert_eq!(send(&server, &ask("hi")).await.status(), 529);
    assert_eq!(text(&message(&server, &ask("hi")).await), "fine");
    assert_eq!(send(&server, &ask("hi")).await.status(), 400, "the sequence is used up");
    assert!(server.take_failures()[0].report.contains("0: matches, but is used up (2 of 2)"));
}

#[tokio::test]
async fn a_sequence_with_a_longer_limit_repeats_its_last_reply() {
    let rule = Rule::new(when(), vec![reply().text("a"), reply().text("b")]).times(3);
    let server = ScriptedApi::start(Script::new().with(rule)).await;
    let mut answers = String::new();
    for _ in 0..3 {
        answers.push_str(text(&message(&server, &ask("hi")).await));
    }
    assert_eq!(answers, "abb");
}

#[tokio::test]
async fn uses_can_be_counted_for_each_conversation() {
    let rule =
        Rule::new(when(), [reply().text("first"), reply().text("second")]).per_conversation();
    let server = ScriptedApi::start(Script::new().with(rule)).await;
    let mut answers = Vec::new();
    for prompt in ["a", "b", "a", "b"] {
        answers.push(text(&message(&server, &ask(prompt)).await).to_owned());
    }
    assert_eq!(answers, ["first", "first", "second", "second"]);
}

#[tokio::test]
async fn rules_match_turns_and_tool_results() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "ls"})))
        .rule(
            when().tool_result_of("Bash").tool_result_contains("a.txt").has_tool_error(false),
            reply().text("found"),
        );
    let server = ScriptedApi::start(script).await;
    let request = ask("list");
    let call = message(&server, &request).await;
    assert_eq!(text(&message(&server, &after_tool(request, &call, "a.txt")).await), "found");
}

#[tokio::test]
async fn rules_can_be_added_to_a_running_server() {
    let server = ScriptedApi::start(Script::new()).await;
    server.append(Script::new().rule(when(), reply().text("added")).count_tokens(5));
    assert_eq!(text(&message(&server, &ask("hi")).await), "added");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_conversations_are_answered_at_once() {
    const CONVERSATIONS: usize = 200;
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Echo", json!({"text": "{{prompt}}"})).gate(1, "all here"),
        )
        .rule(when().turn(1), reply().text("{{prompt}}: {{tool_result}}"));
    let server = std::sync::Arc::new(ScriptedApi::start(script).await);
    let mut conversations = tokio::task::JoinSet::new();
    for number in 0..CONVERSATIONS {
        let server = server.clone();
        conversations.spawn(async move {
            let request = ask(&format!("number {number}"));
            let events = send(&server, &streamed(request.clone())).await.text().await.unwrap();
            let call = accumulate(&parse_events(&events));
            let echoed = call["content"][0]["input"]["text"].as_str().unwrap().to_owned();
            let end = message(&server, &after_tool(request, &call, &echoed)).await;
            assert_eq!(text(&end), format!("number {number}: number {number}"));
        });
    }
    server.gate("all here").reached_by(CONVERSATIONS).await;
    server.gate("all here").release();
    conversations.join_all().await;
    assert_eq!(server.requests().len(), 2 * CONVERSATIONS);
}
