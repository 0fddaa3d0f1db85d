//! Normalises a run for comparison: ids, times, amounts and texts, which differ from run to run, are replaced by
//! placeholders.

use serde_json::{Map, Value};

use crate::play::Log;

/// An event in a comparable form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    /// Its kind, such as `system/init` or `assistant:text`.
    pub(crate) label: String,
    pub(crate) value: Value,
}

/// The compared kinds of events, each separately: callbacks and messages have no order among each other.
pub(crate) const COMPARED: [&str; 9] =
    ["message", "ask", "hook", "tool", "elicitation", "withdrawn", "returned", "thrown", "exit"];

/// All events of one kind.
pub(crate) fn frames(log: &Log, kind: &str) -> Vec<Frame> {
    let frame = |payload: &Value| Frame { label: label(kind, payload), value: normal("", payload) };
    log.of(kind).map(frame).collect()
}

fn label(kind: &str, payload: &Value) -> String {
    let word = |name: &str| payload[name].as_str().unwrap_or("?");
    match kind {
        "message" => message_label(payload),
        "ask" => format!("ask/{}", word("tool")),
        "hook" => format!("hook/{}", word("event")),
        "tool" => format!("tool/{}", word("name")),
        "withdrawn" => format!("withdrawn/{}", word("kind")),
        "returned" => format!("returned/{}", word("method")),
        "thrown" => format!("thrown/{}", word("name")),
        _ => kind.to_owned(),
    }
}

fn message_label(message: &Value) -> String {
    let mut label = message["type"].as_str().unwrap_or("?").to_owned();
    let inner = message["subtype"].as_str().or_else(|| message["event"]["type"].as_str());
    if let Some(inner) = inner {
        label = format!("{label}/{inner}");
    }
    let content = &message["message"]["content"];
    let blocks =
        content.as_array().into_iter().flatten().filter_map(|block| block["type"].as_str());
    let blocks: Vec<&str> = blocks.collect();
    if content.is_string() {
        label += ":text";
    } else if !blocks.is_empty() {
        label = format!("{label}:{}", blocks.join("+"));
    }
    label
}

/// The value under a key, with everything replaced that differs from run to run.
fn normal(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (plain(key, name), normal(name, value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| normal(key, item)).collect(),
        Value::String(text) => normal_text(key, text).into(),
        Value::Number(_) if is_amount(key) => "<amount>".into(),
        other => other.clone(),
    }
}

/// The name of a field, unless it is named after something that differs: a model, a question.
fn plain(key: &str, name: &str) -> String {
    let word = match key {
        "modelUsage" => "<model>",
        _ if name.contains(char::is_whitespace) => "<text>",
        _ => name,
    };
    word.to_owned()
}

fn normal_text(key: &str, text: &str) -> String {
    let word = if text.is_empty() || text.starts_with("toolu_") {
        return text.to_owned();
    } else if is_time(text) {
        "<time>"
    } else if is_id(key, text) {
        "<id>"
    } else if text.contains('/') && !text.contains(char::is_whitespace) {
        "<path>"
    } else if text.contains(char::is_whitespace) || text.len() > 60 {
        "<text>"
    } else {
        return text.to_owned();
    };
    word.to_owned()
}

fn is_id(key: &str, text: &str) -> bool {
    let by_name = ["id", "uuid", "prompt_id", "claude_code_version"].contains(&key)
        || key.ends_with("_id")
        || key.ends_with("_uuid")
        || key.ends_with("ID")
        || key.ends_with("Id");
    let is_uuid =
        text.len() == 36 && text.chars().filter(|character| *character == '-').count() == 4;
    by_name || is_uuid || text.starts_with("msg_") || text.starts_with("req_")
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T')
}

fn is_amount(key: &str) -> bool {
    let key = key.to_lowercase();
    ["_ms", "duration", "tokens", "cost", "pid", "time", "size", "window", "delay", "percentage"]
        .iter()
        .any(|part| key.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Frame, frames};
    use crate::play::Log;

    #[test]
    fn values_that_differ_between_runs_are_replaced() {
        let message = json!({
            "type": "assistant", "uuid": "0f", "session_id": "s", "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"content": [{"type": "tool_use", "id": "toolu_1", "input": {"command": "ls -l"}}], "stop_reason": null},
            "duration_ms": 7, "num_turns": 2, "subtype": "success",
        });
        let log = Log { events: vec![json!({"message": message})], ..Log::default() };
        let expected = Frame {
            label: "assistant/success:tool_use".to_owned(),
            value: json!({
                "type": "assistant", "uuid": "<id>", "session_id": "<id>", "timestamp": "<time>",
                "message": {"content": [{"type": "tool_use", "id": "toolu_1", "input": {"command": "<text>"}}], "stop_reason": null},
                "duration_ms": "<amount>", "num_turns": 2, "subtype": "success",
            }),
        };
        assert_eq!(frames(&log, "message"), [expected]);
    }
}
