//! Valid and invalid requests.

use ostler_agui::input::{ResumeStatus, RunAgentInput};
use ostler_agui::message::{Content, MessageBody, PartBody, Source};
use serde_json::{Value, json};

fn body(more: Value) -> Value {
    let mut body = json!({"threadId": "t", "runId": "r", "messages": []});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn read(more: Value) -> RunAgentInput {
    RunAgentInput::from_value(&body(more)).unwrap()
}

#[track_caller]
fn refused(more: Value, message: &str) {
    assert_eq!(RunAgentInput::from_value(&body(more)).unwrap_err().to_string(), message);
}

#[test]
fn the_required_fields_are_enough() {
    let input = read(json!({}));
    assert!(input.is_old_peer());
    assert_eq!((input.tools.len(), input.context.len(), input.state), (0, 0, None));
}

#[test]
fn unknown_fields_roles_and_parts_are_skipped() {
    let input = read(json!({"new": 1, "messages": [
        {"id": "1", "role": "user", "content": "hi", "new": true},
        {"id": "2", "role": "oracle", "content": "hm"},
        {"id": "3", "role": "user", "content": [{"type": "smell"}, {"type": "text", "text": "yes"}]},
    ]}));
    assert_eq!(input.messages.len(), 2);
    assert_eq!(input.warnings.len(), 2, "{:?}", input.warnings);
    let MessageBody::User { content } = &input.messages[1].body else {
        panic!("not a user message")
    };
    assert_eq!(content.text(), "yes");
}

#[test]
fn null_fields_of_old_clients_count_as_absent() {
    let input = read(json!({
        "forwardedProps": null, "parentRunId": null, "tools": [{"name": "n", "description": "d", "parameters": null}],
        "resume": [{"interruptId": "q", "status": "resolved", "payload": null}],
        "messages": [
            {"id": "1", "role": "assistant", "content": null, "toolCalls": null, "name": null},
            {"id": "2", "role": "user", "content": [{"type": "image", "metadata": null,
                "source": {"type": "url", "value": "u", "mimeType": null}}]},
        ],
    }));
    assert_eq!((input.forwarded_props, input.parent_run_id), (None, None));
    assert_eq!(input.tools[0].parameters, None);
    let resume = &input.resume.unwrap()[0];
    assert_eq!((resume.status, &resume.payload), (ResumeStatus::Resolved, &None));
}

#[test]
fn null_is_a_valid_state() {
    assert_eq!(read(json!({"state": null})).state, Some(Value::Null));
    for state in [json!([1]), json!(7), json!("s"), json!({"a": null})] {
        assert_eq!(read(json!({"state": state})).state, Some(state));
    }
}

#[test]
fn old_attachments_are_read_by_their_mime_type() {
    let part = |more: Value| {
        let mut part = json!({"type": "binary"});
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let input = read(json!({"messages": [{"id": "1", "role": "user", "content": [part]}]}));
        let MessageBody::User { content: Content::Parts(parts) } = &input.messages[0].body else {
            panic!("no parts")
        };
        parts[0].clone()
    };
    let image = part(json!({"mimeType": "image/png", "data": "aGk=", "filename": "a.png"}));
    assert_eq!(image.filename(), Some("a.png"));
    let source = Source::Data { value: "aGk=".into(), mime_type: "image/png".into() };
    assert_eq!(image.body, PartBody::Image { source });
    assert!(matches!(
        part(json!({"mimeType": "audio/wav", "url": "u"})).body,
        PartBody::Audio { .. }
    ));
    assert!(matches!(
        part(json!({"mimeType": "video/mp4", "id": "f"})).body,
        PartBody::Video { .. }
    ));
    assert!(matches!(
        part(json!({"mimeType": "text/csv", "id": "f"})).body,
        PartBody::Document { .. }
    ));
}

#[test]
fn an_invalid_field_is_named() {
    refused(json!({"threadId": 7}), "`threadId` must be a string");
    refused(json!({"messages": {}}), "`messages` must be a list");
    refused(json!({"messages": [7]}), "`messages[0]` must be a JSON object");
    refused(
        json!({"messages": [{"id": "1", "role": "user"}]}),
        "`messages[0].content` must be present",
    );
    refused(
        json!({"messages": [{"id": "1", "role": "user", "content": 7}]}),
        "`messages[0].content` must be a string or a list of parts",
    );
    refused(
        json!({"messages": [{"id": "1", "role": "user", "content": [{"type": "image", "source": {"type": "data", "value": "x"}}]}]}),
        "`messages[0].content[0].source.mimeType` must be present",
    );
    refused(
        json!({"messages": [{"id": "1", "role": "tool", "content": "x"}]}),
        "`messages[0].toolCallId` must be present",
    );
    refused(json!({"tools": [{"name": "n"}]}), "`tools[0].description` must be present");
    refused(
        json!({"context": [{"description": "n", "value": 1}]}),
        "`context[0].value` must be a string",
    );
    refused(
        json!({"resume": [{"interruptId": "q", "status": "maybe"}]}),
        "`resume[0].status` must be `resolved` or `cancelled`",
    );
    let error = RunAgentInput::from_json(b"{").unwrap_err().to_string();
    assert!(error.starts_with("`the body` must be JSON: "), "{error}");
    assert!(RunAgentInput::from_json(b"[]").is_err());
    assert_eq!(
        RunAgentInput::from_json(br#"{"runId":"r","messages":[]}"#).unwrap_err().to_string(),
        "`threadId` must be present"
    );
}

#[test]
fn only_another_major_version_is_foreign() {
    let major = |version: &str| read(json!({"protocolVersion": version})).foreign_major();
    assert_eq!(["1.0", "1.7", "abc", ""].map(major), [None; 4]);
    assert_eq!(major("2.0"), Some(2));
}

#[test]
fn an_input_is_written_as_it_was_read() {
    let body = body(json!({
        "protocolVersion": "1.0", "state": {"a": 1}, "forwardedProps": {"x": 1},
        "tools": [{"name": "n", "description": "d", "parameters": {"type": "object"}}],
        "context": [{"description": "d", "value": "v"}],
        "messages": [
            {"id": "1", "role": "user", "content": [{"type": "text", "text": "t"}]},
            {"id": "2", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}]},
            {"id": "3", "role": "tool", "content": "x", "toolCallId": "c", "error": "no"},
            {"id": "4", "role": "reasoning", "content": "hm", "encryptedValue": "s"},
            {"id": "5", "role": "activity", "activityType": "a", "content": {}},
        ],
    }));
    let input = RunAgentInput::from_value(&body).unwrap();
    assert_eq!(serde_json::to_value(&input).unwrap(), body);
}
