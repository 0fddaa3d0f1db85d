//! A session as lines that are the same on every backend: events without ids, times and wording.

use ostler::Message;
use ostler::proto::api::StreamEvent;
use ostler::proto::message::System;
use serde_json::Value;

/// The lines of a message. Messages outside of the conversation (retries, states, hook reports) have none.
pub(super) fn lines(message: &Message) -> Vec<String> {
    match message {
        Message::Assistant(said) => assistant(&serde_json::to_value(said).unwrap()),
        Message::User(said) => user(&serde_json::to_value(said).unwrap()),
        Message::Result(result) => vec![self::result(&serde_json::to_value(result).unwrap())],
        Message::System(System::Init(_)) => vec!["init".to_owned()],
        Message::System(System::TaskStarted(_)) => vec!["task started".to_owned()],
        Message::System(System::TaskNotification(task)) => vec![format!("task {}", task.status)],
        Message::StreamEvent(event) => match &event.event {
            StreamEvent::MessageStop(_) => vec!["delta end".to_owned()],
            _ => message.text_delta().map(|text| format!("delta {text}")).into_iter().collect(),
        },
        _ => Vec::new(),
    }
}

fn blocks(message: &Value) -> Vec<Value> {
    match &message["message"]["content"] {
        Value::Array(blocks) => blocks.clone(),
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

fn assistant(message: &Value) -> Vec<String> {
    if message["message"]["model"] == "<synthetic>" {
        // The text differs between engines.
        return vec![format!("trouble {}", message["error"].as_str().unwrap_or("-"))];
    }
    let line = |block: Value| match block["type"].as_str() {
        Some("text") => format!("text {}", block["text"].as_str().unwrap()),
        Some("tool_use") => format!("call {} {}", block["name"].as_str().unwrap(), block["input"]),
        Some(kind) => kind.to_owned(),
        None => block.to_string(),
    };
    blocks(message).into_iter().map(line).collect()
}

fn user(message: &Value) -> Vec<String> {
    let line = |block: Value| match block["type"].as_str() {
        Some("tool_result") if block["is_error"] == true => "tool failed".to_owned(),
        Some("tool_result") => "tool ok".to_owned(),
        Some("text") => {
            let text = block["text"].as_str().unwrap();
            if text.starts_with("[Request interrupted") { "interrupted" } else { "note" }.to_owned()
        }
        _ => block.to_string(),
    };
    blocks(message).into_iter().map(line).collect()
}

fn result(result: &Value) -> String {
    let mut line = format!("result {}", result["subtype"].as_str().unwrap());
    if result["is_error"] == true {
        line.push_str(" error");
        if let Some(status) = result["api_error_status"].as_u64() {
            line.push_str(&format!(" {status}"));
        }
    } else if let Some(text) = result["result"].as_str() {
        line.push_str(&format!(" {text:?}"));
    }
    let denials = result["permission_denials"].as_array().map_or(0, Vec::len);
    if denials > 0 {
        line.push_str(&format!(" denied={denials}"));
    }
    if !result["structured_output"].is_null() {
        line.push_str(&format!(" = {}", result["structured_output"]));
    }
    line
}
