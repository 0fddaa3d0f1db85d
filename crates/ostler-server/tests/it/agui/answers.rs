//! Runs that end because the client must act, and the runs that bring its answers.

use ostler_server::agui::Approvals;
use ostler_testkit::{Script, reply as model, when};
use serde_json::{Value, json};

use super::stage::*;

fn paint() -> Script {
    Script::new()
        .rule(when().has_tool_result(true), model().text("It is {{tool_result}}"))
        .rule(
            when().prompt_contains("paint"),
            model().text("Painting.").tool_use("mcp__ag_ui__paint", json!({"colour": "red"})),
        )
        .rule(when(), model().text("Hello"))
}

fn offering(input: Value, names: &[&str]) -> Value {
    let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    with(input, "tools", json!(tools))
}

#[tokio::test]
async fn a_call_of_a_client_tool_ends_the_run_and_is_answered_in_the_next_one() {
    let stage = Stage::new(paint()).await;
    let first = stage.run(&offering(input("r1", &[user("u1", "paint")]), &["paint"])).await;
    let made = calls(&first);
    assert_eq!((made[0].1.as_str(), made[0].2.as_str()), ("paint", r#"{"colour":"red"}"#));
    assert_eq!(results(&first), []);
    assert_eq!(pending(&first), json!([made[0].0]));
    assert_eq!(stage.api.requests().len(), 1, "the model waits");

    let messages =
        [user("u1", "paint"), reply("a1", "Painting."), answer("t1", &made[0].0, json!("crimson"))];
    let second = stage.run(&offering(input("r2", &messages), &["paint"])).await;
    assert_eq!(text_of(&second), "It is crimson");
    assert_eq!((calls(&second), results(&second)), (vec![], vec![]), "nothing is sent again");
    assert_eq!(outcome(&second), "success");
    assert_eq!(stage.api.requests().len(), 2);
}

#[tokio::test]
async fn calls_of_one_turn_are_answered_together() {
    let both = model()
        .tool_use("mcp__ag_ui__paint", json!({"n": 1}))
        .tool_use("mcp__ag_ui__paint", json!({"n": 2}))
        .tool_use("Glob", json!({"pattern": "*.none"}));
    let script =
        Script::new().rule(when().has_tool_result(true), model().text("done")).rule(when(), both);
    let stage = Stage::new(script).await;
    let first = stage.run(&offering(input("r1", &[user("u1", "paint")]), &["paint"])).await;
    let made = calls(&first);
    let (one, two) = (made[0].0.clone(), made[1].0.clone());
    assert_eq!(results(&first).len(), 1, "the search is done here: {first:#?}");
    assert_eq!(pending(&first), json!([one, two]));

    // The turn does not continue with only one answer.
    let mut messages =
        vec![user("u1", "paint"), reply("a1", ""), answer("t2", &two, json!("second"))];
    let second = stage.run(&offering(input("r2", &messages), &["paint"])).await;
    assert_eq!(pending(&second), json!([one]));
    messages.push(answer("t1", &one, json!("first")));
    let third = stage.run(&offering(input("r3", &messages), &["paint"])).await;
    assert_eq!(text_of(&third), "done");
    let results = stage.api.requests()[1].tool_results();
    let texts: Vec<_> = results.iter().map(|result| result.text.clone()).collect();
    assert_eq!(&texts[..2], ["first", "second"]);
}

#[tokio::test]
async fn an_answer_may_be_an_error_or_a_picture() {
    for (content, error, words) in [
        (json!("ignored"), json!("no paint left"), "no paint left"),
        (
            json!([{"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}]),
            json!(null),
            "image",
        ),
    ] {
        let stage = Stage::new(paint()).await;
        let first = stage.run(&offering(input("r1", &[user("u1", "paint")]), &["paint"])).await;
        let mut said = answer("t1", &calls(&first)[0].0, content);
        said["error"] = error;
        let messages = [user("u1", "paint"), said];
        let second = stage.run(&offering(input("r2", &messages), &["paint"])).await;
        assert_eq!(outcome(&second), "success");
        let request = &stage.api.requests()[1];
        assert!(
            request.body["messages"].to_string().contains(words),
            "{}",
            request.body["messages"]
        );
    }
}

#[tokio::test]
async fn an_answer_to_a_call_that_does_not_exist_is_ignored() {
    let stage = Stage::new(paint()).await;
    let messages = [
        user("u1", "hi"),
        reply("a1", "x"),
        answer("t1", "never", json!("made up")),
        user("u2", "hi again"),
    ];
    let events = stage.run(&input("r1", &messages)).await;
    assert_eq!(text_of(&events), "Hello");
    let messages =
        [&messages[..], &[reply("a2", "Hello"), answer("t2", "nor", json!("this"))]].concat();
    let events = stage.run(&input("r2", &messages)).await;
    assert_eq!(
        (kinds(&events), stage.api.requests().len()),
        (vec!["RUN_STARTED".into(), "RUN_FINISHED".into()], 1)
    );
}

#[tokio::test]
async fn a_prompt_instead_of_an_answer_reaches_the_model() {
    let stage = Stage::new(
        Script::new()
            .rule(when().prompt_contains("never mind"), model().text("Fine"))
            .rule(when(), model().tool_use("mcp__ag_ui__paint", json!({}))),
    )
    .await;
    let first = stage.run(&offering(input("r1", &[user("u1", "paint")]), &["paint"])).await;
    let call = calls(&first)[0].0.clone();
    let messages = [user("u1", "paint"), user("u2", "never mind")];
    let second = stage.run(&offering(input("r2", &messages), &["paint"])).await;
    assert_eq!((text_of(&second).as_str(), outcome(&second).as_str()), ("Fine", "success"));
    // The answer arrives too late.
    let late = [
        user("u1", "paint"),
        user("u2", "never mind"),
        reply("a", "Fine"),
        answer("t1", &call, json!("late")),
    ];
    let third = stage.run(&offering(input("r3", &late), &["paint"])).await;
    assert_eq!(kinds(&third), ["RUN_STARTED", "RUN_FINISHED"]);
    assert!(stage.api.failures().is_empty(), "every call has a result");
}

#[tokio::test]
async fn another_run_may_offer_other_tools() {
    let stage = Stage::new(paint()).await;
    stage.run(&offering(input("r1", &[user("u1", "hi")]), &["paint"])).await;
    let messages = [user("u1", "hi"), reply("a1", "Hello"), user("u2", "hi again")];
    stage.run(&offering(input("r2", &messages), &["carve"])).await;
    let requests = stage.api.requests();
    assert!(requests[0].tool_names().contains(&"mcp__ag_ui__paint"));
    assert!(requests[1].tool_names().contains(&"mcp__ag_ui__carve"));
    assert!(!requests[1].tool_names().contains(&"mcp__ag_ui__paint"));
    assert_eq!(requests[1].messages().len(), 3, "and the conversation continues");
}

// --- questions

fn writes() -> Script {
    Script::new()
        .rule(when().has_tool_result(true), model().text("It said: {{tool_result}}"))
        .rule(
            when().prompt_contains("two"),
            model()
                .tool_use("Write", json!({"file_path": "a.txt", "content": "a"}))
                .tool_use("Write", json!({"file_path": "b.txt", "content": "b"})),
        )
        .rule(
            when(),
            model().tool_use("Write", json!({"file_path": "a.txt", "content": "original"})),
        )
}

fn resume(run: &str, entries: Value) -> Value {
    with(input(run, &[user("u1", "write")]), "resume", entries)
}

#[tokio::test]
async fn a_call_that_needs_approval_ends_the_run_with_an_interrupt() {
    let stage = Stage::new(writes()).await;
    let first = stage.run(&input("r1", &[user("u1", "write")])).await;
    assert_eq!(outcome(&first), "interrupt");
    let asked = interrupts(&first);
    let call = calls(&first)[0].0.clone();
    assert_eq!((&asked[0]["reason"], &asked[0]["toolCallId"]), (&json!("tool_call"), &json!(call)));
    assert_eq!(asked[0]["metadata"]["input"]["content"], "original");
    assert!(!stage.home.path().join("a.txt").exists());

    // Without an answer, or with an answer to another interrupt, the question stays.
    for entries in [
        json!([]),
        json!([{"interruptId": "other", "status": "resolved", "payload": {"approved": true}}]),
    ] {
        let again = stage.run(&resume("r2", entries)).await;
        assert_eq!(interrupts(&again), asked);
        assert!(!stage.home.path().join("a.txt").exists());
    }
    let unclear = json!([{"interruptId": asked[0]["id"], "status": "resolved", "payload": {"approved": "sure"}}]);
    assert_eq!(interrupts(&stage.run(&resume("r3", unclear)).await), asked);

    let yes = json!([{"interruptId": asked[0]["id"], "status": "resolved", "payload": {"approved": true}}]);
    let second = stage.run(&resume("r4", yes)).await;
    assert_eq!(outcome(&second), "success");
    assert_eq!(results(&second)[0].0, call, "the old call is answered");
    assert_eq!(calls(&second), [], "and not made again");
    assert_eq!(std::fs::read_to_string(stage.home.path().join("a.txt")).unwrap(), "original");
}

#[tokio::test]
async fn an_interrupt_can_be_denied_edited_or_cancelled() {
    for (entry, written, expected) in [
        (
            json!({"status": "resolved", "payload": {"approved": false, "message": "not now"}}),
            None,
            "not now",
        ),
        (json!({"status": "cancelled"}), None, "left the question"),
        (
            json!({"status": "resolved", "payload": {"approved": true, "editedArgs": {"file_path": "a.txt", "content": "edited"}}}),
            Some("edited"),
            "a.txt",
        ),
    ] {
        let stage = Stage::new(writes()).await;
        let first = stage.run(&input("r1", &[user("u1", "write")])).await;
        let mut entry = entry;
        entry["interruptId"] = interrupts(&first)[0]["id"].clone();
        let second = stage.run(&resume("r2", json!([entry]))).await;
        assert_eq!(outcome(&second), "success");
        assert!(text_of(&second).contains(expected), "{}", text_of(&second));
        let file = std::fs::read_to_string(stage.home.path().join("a.txt")).ok();
        assert_eq!(file.as_deref(), written);
    }
}

#[tokio::test]
async fn approvals_of_calls_in_sequence_are_asked_in_sequence() {
    let stage = Stage::new(writes()).await;
    let first = stage.run(&input("r1", &[user("u1", "two")])).await;
    assert_eq!(calls(&first).len(), 2);
    let asked = interrupts(&first);
    assert_eq!(asked.len(), 1, "the second call waits for the first");
    let yes = |asked: &[Value]| json!([{"interruptId": asked[0]["id"], "status": "resolved", "payload": {"approved": true}}]);
    let second = stage.run(&with(input("r2", &[user("u1", "two")]), "resume", yes(&asked))).await;
    let next = interrupts(&second);
    assert_ne!(next[0]["id"], asked[0]["id"]);
    let third = stage.run(&with(input("r3", &[user("u1", "two")]), "resume", yes(&next))).await;
    assert_eq!(outcome(&third), "success", "{third:?} {second:?}");
    assert!(stage.home.path().join("b.txt").exists());
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_with_text() {
    let questions = json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]}]});
    let script = Script::new()
        .rule(when().has_tool_result(true), model().text("{{tool_result}}"))
        .rule(when(), model().tool_use("AskUserQuestion", questions));
    let stage = Stage::new(script).await;
    let first = stage.run(&input("r1", &[user("u1", "write")])).await;
    let asked = interrupts(&first);
    assert_eq!(
        (&asked[0]["reason"], &asked[0]["message"]),
        (&json!("input_required"), &json!("Which colour?"))
    );
    let payload = json!({"answers": {"Which colour?": "Blue"}});
    let entry = json!([{"interruptId": asked[0]["id"], "status": "resolved", "payload": payload}]);
    let second = stage.run(&resume("r2", entry)).await;
    assert!(text_of(&second).contains("Blue"), "{}", text_of(&second));
}

#[tokio::test]
async fn a_client_may_be_asked_for_approval_through_its_own_tool() {
    let stage =
        Stage::with(writes(), |config| config.agui.approvals = Approvals::Tool("confirm".into()))
            .await;
    let first = stage.run(&offering(input("r1", &[user("u1", "write")]), &["confirm"])).await;
    let made = calls(&first);
    assert_eq!((made[0].1.as_str(), made[1].1.as_str()), ("Write", "confirm"));
    let arguments: Value = serde_json::from_str(&made[1].2).unwrap();
    assert_eq!(arguments["toolCallId"], json!(made[0].0));
    assert_eq!(pending(&first), json!([made[0].0, made[1].0]));
    let messages = [user("u1", "write"), answer("t1", &made[1].0, json!(r#"{"approved":true}"#))];
    let second = stage.run(&offering(input("r2", &messages), &["confirm"])).await;
    assert_eq!(results(&second)[0].0, made[0].0);
    assert!(stage.home.path().join("a.txt").exists());

    // Without the tool there is no user to ask.
    let stage =
        Stage::with(writes(), |config| config.agui.approvals = Approvals::Tool("confirm".into()))
            .await;
    let events = stage.run(&input("r1", &[user("u1", "write")])).await;
    assert!(text_of(&events).contains("cannot be asked"), "{}", text_of(&events));
    assert!(!stage.home.path().join("a.txt").exists());
}

#[tokio::test]
async fn a_subagent_that_needs_approval_waits_and_continues() {
    let script = Script::new()
        .rule(when().prompt_contains("dig").has_tool_result(true), model().text("dug"))
        .rule(
            when().prompt_contains("dig"),
            model().tool_use("Write", json!({"file_path": "a.txt", "content": "x"})),
        )
        .rule(when().has_tool_result(true), model().text("All done"))
        .rule(
            when(),
            model().tool_use(
                "Agent",
                json!({"description": "d", "prompt": "dig", "subagent_type": "general-purpose"}),
            ),
        );
    let stage = Stage::new(script).await;
    let first = stage.run(&input("r1", &[user("u1", "go")])).await;
    let asked = interrupts(&first);
    assert_eq!(asked.len(), 1, "{first:#?}");
    let owner = asked[0]["subagentRunId"].clone();
    let story = first.iter().map(|event| event.to_json()).collect::<String>();
    assert!(
        story.contains(&format!("\"subagentRunId\":{owner},\"outcome\":{{\"type\":\"suspended\"")),
        "{story}"
    );
    let yes = json!([{"interruptId": asked[0]["id"], "status": "resolved", "payload": {"approved": true}}]);
    let second = stage.run(&with(input("r2", &[user("u1", "go")]), "resume", yes)).await;
    assert_eq!(
        (text_of(&second).contains("All done"), outcome(&second).as_str()),
        (true, "success")
    );
    assert!(kinds(&second).contains(&"SUBAGENT_FINISHED".to_owned()), "{:?}", kinds(&second));
}
