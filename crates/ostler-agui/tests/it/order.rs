//! Streams that the verifier refuses: one per rule.

use ostler_agui::event::Event;
use ostler_agui::verify::Verifier;
use serde_json::{Value, json};

fn verdict(events: &[Value]) -> Result<(), String> {
    let mut verifier = Verifier::default();
    for event in events {
        let event: Event = serde_json::from_value(event.clone()).expect("an event");
        verifier.check(&event).map_err(|violation| violation.rule)?;
    }
    verifier.finish().map_err(|violation| violation.rule)
}

fn started() -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
}

fn finished() -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
}

fn event(kind: &str, more: Value) -> Value {
    let mut event = json!({"type": kind});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn message(kind: &str, id: &str) -> Value {
    event(kind, json!({"messageId": id, "delta": "", "role": "reasoning"}))
}

fn text(kind: &str, id: &str) -> Value {
    event(kind, json!({"messageId": id, "delta": ""}))
}

fn call(kind: &str, id: &str) -> Value {
    event(
        kind,
        json!({"toolCallId": id, "toolCallName": "n", "delta": "", "messageId": format!("{id}-r"), "content": ""}),
    )
}

/// A run with these events is refused with this message.
#[track_caller]
fn refused(inner: impl IntoIterator<Item = Value>, message: &str) {
    let events: Vec<_> = [started()].into_iter().chain(inner).chain([finished()]).collect();
    let error = verdict(&events).expect_err("an error");
    assert!(error.contains(message), "{error}");
}

#[track_caller]
fn accepted(inner: impl IntoIterator<Item = Value>) {
    let events: Vec<_> = [started()].into_iter().chain(inner).chain([finished()]).collect();
    assert_eq!(verdict(&events), Ok(()));
}

#[test]
fn a_stream_has_a_beginning_and_an_end() {
    let error = json!({"type": "RUN_ERROR", "message": "m"});
    let begin = |events: &[Value]| verdict(events);
    assert!(begin(&[finished()]).unwrap_err().contains("begins with"));
    assert!(begin(&[started()]).unwrap_err().contains("without RUN_FINISHED"));
    assert!(begin(&[]).is_err());
    assert!(begin(&[started(), started()]).unwrap_err().contains("another is active"));
    assert!(
        begin(&[started(), finished(), text("TEXT_MESSAGE_START", "m")])
            .unwrap_err()
            .contains("follows the end")
    );
    assert!(begin(&[error.clone(), finished()]).unwrap_err().contains("follows the failure"));
    assert_eq!(begin(std::slice::from_ref(&error)), Ok(()));
    assert_eq!(begin(&[started(), finished(), error.clone()]), Ok(()), "a late failure");
    assert_eq!(begin(&[started(), error, started(), finished()]), Ok(()), "several runs");
    let other = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "x"});
    assert!(begin(&[started(), other]).unwrap_err().contains("not the one that started"));
}

#[test]
fn text_calls_and_reasoning_are_opened_once_and_closed() {
    for (start, content, end) in [
        ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"),
        ("REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"),
    ] {
        let make = |kind: &str| match kind.split('_').next() {
            Some("TEXT") => text(kind, "x"),
            Some("TOOL") => call(kind, "x"),
            _ => message(kind, "x"),
        };
        accepted([make(start), make(content), make(end)]);
        refused(
            [make(start), make(start)],
            if start.starts_with("TOOL") { "twice" } else { "open already" },
        );
        refused([make(content)], "not open");
        refused([make(end)], "not open");
        refused([make(start), make(end), make(content)], "not open");
        refused([make(start)], "still open when the run ends");
    }
    let span = |kind: &str| json!({"type": kind, "messageId": "s"});
    accepted([span("REASONING_START"), span("REASONING_END")]);
    refused([span("REASONING_START")], "still open");
    refused([span("REASONING_END")], "not open");
    let step = |kind: &str| json!({"type": kind, "stepName": "s"});
    accepted([step("STEP_STARTED"), step("STEP_FINISHED")]);
    refused([step("STEP_STARTED"), step("STEP_STARTED")], "open already");
    refused([step("STEP_FINISHED")], "not open");
    refused([step("STEP_STARTED")], "still open");
}

#[test]
fn ids_of_messages_are_not_shared() {
    refused(
        [message("REASONING_MESSAGE_START", "x"), text("TEXT_MESSAGE_START", "x")],
        "another message",
    );
    refused(
        [text("TEXT_MESSAGE_START", "x"), message("REASONING_MESSAGE_START", "x")],
        "another message",
    );
    let snapshot =
        json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "x", "activityType": "a", "content": {}});
    refused([text("TEXT_MESSAGE_START", "x"), snapshot.clone()], "another message");
    refused([snapshot.clone(), text("TEXT_MESSAGE_START", "x")], "another message");
    let delta =
        json!({"type": "ACTIVITY_DELTA", "messageId": "x", "activityType": "a", "patch": []});
    accepted([snapshot, delta.clone()]);
    refused([delta], "no snapshot");
}

#[test]
fn a_call_is_answered_once_after_its_end() {
    let made = [call("TOOL_CALL_START", "c"), call("TOOL_CALL_END", "c")];
    let answer = call("TOOL_CALL_RESULT", "c");
    accepted(made.iter().cloned().chain([answer.clone()]));
    accepted([answer.clone()]);
    refused([made[0].clone(), answer.clone()], "before it is complete");
    refused(made.iter().cloned().chain([answer.clone(), answer]), "answered twice");
    let same =
        json!({"type": "TOOL_CALL_RESULT", "messageId": "c", "toolCallId": "c", "content": ""});
    refused([same], "the id of the call");
}

#[test]
fn only_the_agent_that_opens_an_item_continues_it() {
    let of = |mut event: Value, run: &str| {
        event["subagentRunId"] = json!(run);
        event
    };
    let start = of(text("TEXT_MESSAGE_START", "m"), "a");
    refused([start.clone(), of(text("TEXT_MESSAGE_END", "m"), "b")], "another agent");
    accepted([start.clone(), text("TEXT_MESSAGE_END", "m")]);
    refused(
        [start.clone(), text("TEXT_MESSAGE_END", "m"), text("TEXT_MESSAGE_START", "m")],
        "another agent",
    );
    let inside = event(
        "TOOL_CALL_START",
        json!({"toolCallId": "c", "toolCallName": "n", "parentMessageId": "m"}),
    );
    refused([start, inside], "another agent");
}

#[test]
fn subagents_start_once_and_end() {
    let begin = |id: &str, parent: Value| {
        let mut event = json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n"});
        if !parent.is_null() {
            event["parentSubagentRunId"] = parent;
        }
        event
    };
    let end = json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "a"});
    accepted([begin("a", json!(null)), end.clone()]);
    refused([begin("a", json!(null))], "still active");
    refused([begin("a", json!(null)), end.clone(), begin("a", json!(null))], "twice");
    refused([begin("a", json!("b"))], "before its parent");
    refused([end], "not active");
}

#[test]
fn the_end_of_a_run_lists_its_pending_calls_and_questions() {
    let made = || [call("TOOL_CALL_START", "c"), call("TOOL_CALL_END", "c")];
    let ending = |outcome: Value| json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome});
    let run = |outcome: Value| {
        let events: Vec<_> =
            [started()].into_iter().chain(made()).chain([ending(outcome)]).collect();
        verdict(&events)
    };
    assert_eq!(run(json!({"type": "success", "pendingToolCallIds": ["c"]})), Ok(()));
    assert!(
        run(json!({"type": "success", "pendingToolCallIds": ["x"]}))
            .unwrap_err()
            .contains("not listed")
    );
    assert_eq!(run(json!({"type": "cancelled"})), Ok(()));
    let ask = json!({"id": "q", "reason": "confirmation"});
    assert_eq!(run(json!({"type": "interrupt", "interrupts": [ask]})), Ok(()));
    assert!(
        run(json!({"type": "interrupt", "interrupts": [ask, ask]}))
            .unwrap_err()
            .contains("its own id")
    );
    assert!(run(json!({"type": "interrupt", "interrupts": []})).is_err());
}
