//! The official validators accept our events and their order.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ostler_agui::downgrade::for_old_peer;
use ostler_agui::event::Event;
use ostler_proto::frame::ToHost;
use serde_json::{Value, json};

use crate::recorded::recordings;
use crate::run::Run;

/// Passes samples to the official clients.
#[track_caller]
fn validate(samples: &[Value]) -> Result<String, String> {
    let folder = std::env::var_os("OSTLER_AGUI_PEERS")
        .expect("OSTLER_AGUI_PEERS names a folder with node_modules");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/judge.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .env("OSTLER_AGUI_PEERS", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let lines: String = samples.iter().map(|sample| format!("{sample}\n")).collect();
    let mut stdin = node.stdin.take().expect("a pipe");
    // Another thread writes while this one reads the output; otherwise both processes could wait for each other.
    let feeding = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = node.wait_with_output().expect("node ends");
    feeding.join().expect("no panic").expect("node listens");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

/// One event of every type with all fields, and one with the required fields only.
fn one_of_each() -> Vec<Value> {
    let usage = json!([{"provider": "anthropic", "model": "m", "inputTokens": 3, "outputTokens": 2, "totalTokens": 5,
        "reasoningTokens": 1, "cachedInputTokens": 1, "cacheWriteInputTokens": 1}]);
    let interrupt = json!({"id": "q", "reason": "tool_call", "message": "m", "toolCallId": "c",
        "responseSchema": {"type": "object"}, "expiresAt": "2026-01-01T00:00:00Z", "metadata": {"a": null},
        "subagentRunId": "s"});
    let part = |kind: &str, source: Value| json!({"type": kind, "source": source, "id": "i", "metadata": {"filename": "f"}});
    let parts = json!([
        {"type": "text", "text": "t"},
        part("image", json!({"type": "data", "value": "aGk=", "mimeType": "image/png"})),
        part("audio", json!({"type": "url", "value": "u", "mimeType": "audio/wav"})),
        part("video", json!({"type": "url", "value": "u"})),
        part("document", json!({"type": "file", "value": "f", "provider": "p", "mimeType": "application/pdf"})),
    ]);
    let patch = json!([
        {"op": "add", "path": "/a", "value": null}, {"op": "remove", "path": "/a"},
        {"op": "replace", "path": "/a", "value": 1}, {"op": "move", "from": "/a", "path": "/b"},
        {"op": "copy", "from": "/a", "path": "/b"}, {"op": "test", "path": "/a", "value": 1},
    ]);
    let messages = json!([
        {"id": "1", "role": "user", "content": parts, "name": "n", "metadata": {}},
        {"id": "2", "role": "assistant", "content": "c", "toolCalls": [
            {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}, "encryptedValue": "e", "metadata": {}}]},
        {"id": "3", "role": "tool", "content": parts, "toolCallId": "c", "error": "e"},
        {"id": "4", "role": "reasoning", "content": "hm", "encryptedValue": "e", "subagentRunId": "s"},
        {"id": "5", "role": "activity", "activityType": "a", "content": {}},
        {"id": "6", "role": "system", "content": "s"}, {"id": "7", "role": "developer", "content": "d"},
    ]);
    let input = json!({"threadId": "t", "runId": "r", "messages": messages, "protocolVersion": "1.0", "parentRunId": "p",
        "state": null, "tools": [{"name": "n", "description": "d", "parameters": {"type": "object"}, "metadata": {}}],
        "context": [{"description": "d", "value": "v"}], "forwardedProps": {},
        "resume": [{"interruptId": "q", "status": "resolved", "payload": {"approved": true}, "metadata": {}}]});
    let ids = json!({"threadId": "t", "runId": "r"});
    let finished = |outcome: Value| {
        event(
            "RUN_FINISHED",
            json!({"threadId": "t", "runId": "r", "result": 1, "outcome": outcome, "usage": usage}),
        )
    };
    let message = json!({"messageId": "m"});
    let delta = json!({"messageId": "m", "delta": "d"});
    let call = json!({"toolCallId": "c"});
    vec![
        event(
            "RUN_STARTED",
            json!({"threadId": "t", "runId": "r", "protocolVersion": "1.0", "parentRunId": "p", "input": input}),
        ),
        event("RUN_STARTED", ids.clone()),
        event("RUN_FINISHED", ids),
        finished(json!({"type": "success"})),
        finished(json!({"type": "success", "pendingToolCallIds": ["c"]})),
        finished(json!({"type": "interrupt", "interrupts": [interrupt]})),
        finished(json!({"type": "cancelled"})),
        event("RUN_ERROR", json!({"message": "m", "code": "c", "usage": usage})),
        event("STEP_STARTED", json!({"stepName": "s", "subagentRunId": "s"})),
        event("STEP_FINISHED", json!({"stepName": "s"})),
        event(
            "TEXT_MESSAGE_START",
            json!({"messageId": "m", "role": "assistant", "name": "n", "subagentRunId": "s"}),
        ),
        event("TEXT_MESSAGE_CONTENT", delta.clone()),
        event("TEXT_MESSAGE_END", message.clone()),
        event(
            "TEXT_MESSAGE_CHUNK",
            json!({"messageId": "m", "role": "user", "delta": "d", "name": "n"}),
        ),
        event(
            "TOOL_CALL_START",
            json!({"toolCallId": "c", "toolCallName": "n", "parentMessageId": "m"}),
        ),
        event("TOOL_CALL_ARGS", json!({"toolCallId": "c", "delta": "{}"})),
        event("TOOL_CALL_END", call),
        event(
            "TOOL_CALL_CHUNK",
            json!({"toolCallId": "c", "toolCallName": "n", "parentMessageId": "m", "delta": "d"}),
        ),
        event(
            "TOOL_CALL_RESULT",
            json!({"messageId": "m", "toolCallId": "c", "content": parts, "role": "tool"}),
        ),
        event("STATE_SNAPSHOT", json!({"snapshot": null})),
        event("STATE_DELTA", json!({"delta": patch})),
        event("MESSAGES_SNAPSHOT", json!({"messages": messages})),
        event(
            "ACTIVITY_SNAPSHOT",
            json!({"messageId": "m", "activityType": "a", "content": {}, "replace": false}),
        ),
        event("ACTIVITY_DELTA", json!({"messageId": "m", "activityType": "a", "patch": patch})),
        event("REASONING_START", message.clone()),
        event("REASONING_END", message.clone()),
        event("REASONING_MESSAGE_START", json!({"messageId": "m", "role": "reasoning"})),
        event("REASONING_MESSAGE_CONTENT", delta.clone()),
        event("REASONING_MESSAGE_END", message),
        event("REASONING_MESSAGE_CHUNK", delta),
        event(
            "REASONING_ENCRYPTED_VALUE",
            json!({"subtype": "tool-call", "entityId": "e", "encryptedValue": "v"}),
        ),
        event(
            "SUBAGENT_STARTED",
            json!({"subagentRunId": "s", "name": "n", "description": "d", "parentSubagentRunId": "p",
            "parentToolCallId": "c", "parentMessageId": "m"}),
        ),
        event(
            "SUBAGENT_FINISHED",
            json!({"subagentRunId": "s", "result": 1, "outcome": {"type": "success"}}),
        ),
        event(
            "SUBAGENT_FINISHED",
            json!({"subagentRunId": "s", "outcome": {"type": "suspended", "interruptIds": ["q"]}}),
        ),
        event("SUBAGENT_ERROR", json!({"subagentRunId": "s", "message": "m", "code": "c"})),
        event("RAW", json!({"event": {"a": 1}, "source": "s"})),
        event("CUSTOM", json!({"name": "n", "value": null})),
    ]
}

fn event(kind: &str, more: Value) -> Value {
    let mut event = json!({"type": kind, "timestamp": 1_700_000_000_000_i64, "rawEvent": {}, "metadata": {"a": null}});
    event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    event
}

fn sample(name: &str, old: bool, whole: bool, events: impl Into<Value>) -> Value {
    json!({"name": name, "old": old, "whole": whole, "events": events.into()})
}

#[test]
fn every_type_of_event_keeps_all_its_fields() {
    let types: std::collections::BTreeSet<_> =
        one_of_each().iter().map(|event| event["type"].to_string()).collect();
    assert_eq!(types.len(), 31, "{types:?}");
    for value in one_of_each() {
        let event: Event = serde_json::from_value(value.clone()).expect("an event");
        assert_eq!(serde_json::to_value(&event).expect("JSON"), value);
    }
}

#[test]
#[ignore = "needs clients of AG-UI from npm: OSTLER_AGUI_PEERS"]
fn the_official_validators_accept_every_type_of_event() {
    let events: Vec<Event> = one_of_each()
        .into_iter()
        .map(|value| serde_json::from_value(value).expect("an event"))
        .collect();
    let events = serde_json::to_value(&events).expect("JSON");
    let output = validate(&[sample("one of each", false, false, events)]);
    assert_eq!(output.unwrap_or_else(|faults| panic!("{faults}")), "judged 37\n");
}

#[test]
#[ignore = "needs clients of AG-UI from npm: OSTLER_AGUI_PEERS"]
fn the_official_validators_reject_invalid_streams() {
    let bad = |event: Value| {
        let began = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
        validate(&[sample("bad", false, true, json!([began, event]))]).expect_err("a fault")
    };
    assert!(
        bad(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "thread_id": "t"}))
            .contains("thread_id")
    );
    assert!(
        bad(json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "name": null})).contains("name")
    );
    assert!(
        bad(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"})).contains("TEXT_MESSAGE_END")
    );
    let ended = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}});
    assert!(validate(&[sample("old", true, false, json!([ended]))]).is_err());
}

#[test]
#[ignore = "needs clients of AG-UI from npm: OSTLER_AGUI_PEERS"]
fn the_official_clients_accept_the_events_of_all_recordings() {
    let mut samples = Vec::new();
    for (name, frames) in recordings() {
        for turn in frames.split_inclusive(|frame| matches!(frame, ToHost::Result(_))) {
            let mut run = Run::plain();
            turn.iter().for_each(|frame| run.frame(frame));
            run.end();
            let events = serde_json::to_value(&run.events).expect("JSON");
            samples.push(sample(&name, false, true, events));
            let old: Vec<Event> = run.events.into_iter().map(for_old_peer).collect();
            samples.push(sample(&name, true, true, serde_json::to_value(&old).expect("JSON")));
        }
    }
    validate(&samples).unwrap_or_else(|faults| panic!("{faults}"));
}
