//! Refuses requests that the real Messages API would refuse, above all invalid conversations.
//!
//! An engine that loses a tool result must not pass its tests because the fake model is lenient. Checked is what an
//! agent can get wrong; parameters such as temperature are not checked.

use std::collections::HashSet;

use serde_json::Value;

use crate::conversation::{Conversation, blocks};
use crate::tools;

/// The reason why the API would answer a `/v1/messages` request with `invalid_request_error`.
pub(crate) fn check_message_request(body: &Value) -> Result<(), String> {
    check_countable_request(body)?;
    match body.get("max_tokens") {
        None => Err("max_tokens: Field required".to_owned()),
        Some(limit) if limit.as_u64().is_none_or(|limit| limit == 0) => {
            Err(format!("max_tokens: must be a positive integer, not {limit}"))
        }
        Some(_) => Ok(()),
    }
}

/// The checks that also apply to `count_tokens`.
pub(crate) fn check_countable_request(body: &Value) -> Result<(), String> {
    if !body.is_object() {
        return Err("the request body must be a JSON object".to_owned());
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("model: Field required".to_owned());
    }
    let messages = body["messages"].as_array().ok_or("messages: Field required")?;
    if messages.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    check_tool_names(body)?;
    tools::check_definitions(body)?;
    for (number, message) in messages.iter().enumerate() {
        check_message(number, message, number + 1 == messages.len())?;
    }
    if messages[0]["role"] != "user" {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    check_tool_pairs(messages)
}

fn check_tool_names(body: &Value) -> Result<(), String> {
    let mut seen = HashSet::new();
    match Conversation::of(body).tool_names().into_iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(format!("tools: Tool names must be unique, {name} is not")),
        None => Ok(()),
    }
}

fn check_message(number: usize, message: &Value, is_last: bool) -> Result<(), String> {
    let at = format!("messages.{number}");
    let role = message["role"].as_str().ok_or(format!("{at}.role: Field required"))?;
    // Newer models accept system messages after the first message. Before it, instructions belong into `system`.
    let is_allowed = matches!(role, "user" | "assistant") || (role == "system" && number > 0);
    if !is_allowed {
        return Err(format!("{at}.role: must be \"user\" or \"assistant\", not \"{role}\""));
    }
    let may_be_empty = is_last && role == "assistant";
    match &message["content"] {
        Value::String(text) if text.is_empty() && !may_be_empty => {
            Err(format!("{at}: content must not be empty"))
        }
        Value::Array(blocks) if blocks.is_empty() && !may_be_empty => {
            Err(format!("{at}: content must not be empty"))
        }
        Value::String(_) => Ok(()),
        Value::Array(blocks) => {
            let mut numbered = blocks.iter().enumerate();
            numbered.try_for_each(|(position, block)| {
                check_block(&format!("{at}.content.{position}"), role, block)
            })
        }
        _ => Err(format!("{at}.content: must be a string or a list of content blocks")),
    }
}

fn check_block(at: &str, role: &str, block: &Value) -> Result<(), String> {
    let kind = block["type"].as_str().ok_or(format!("{at}.type: Field required"))?;
    let required = |field: &str| match block[field].as_str() {
        Some(text) if !text.is_empty() => Ok(()),
        _ => Err(format!("{at}.{kind}.{field}: must be a non-empty string")),
    };
    match (kind, role) {
        ("text", _) => required("text"),
        // Blocks of other types are allowed: for newer models, system messages can also change the tools.
        (
            "image" | "document" | "thinking" | "redacted_thinking" | "tool_use" | "tool_result",
            "system",
        ) => Err(format!("{at}: a message of the system has text, not a {kind} block")),
        ("thinking", "assistant") => required("signature"),
        ("tool_use", "assistant") => {
            required("id")?;
            required("name")?;
            if block["input"].is_object() {
                Ok(())
            } else {
                Err(format!("{at}.tool_use.input: must be an object"))
            }
        }
        ("tool_result", "user") => {
            required("tool_use_id")?;
            tools::check_result(at, block)
        }
        ("image", _) => tools::check_image(at, block),
        ("tool_use" | "thinking" | "redacted_thinking", "user") | ("tool_result", _) => {
            Err(format!("{at}: a {kind} block cannot be in a message of the {role}"))
        }
        _ => Ok(()),
    }
}

/// Every `tool_use` must have exactly one `tool_result` in the next message, and there must be no other results.
fn check_tool_pairs(messages: &[Value]) -> Result<(), String> {
    let mut ever_called = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        check_answers(number, message, &open)?;
        open = ids(message, "tool_use", "id");
        if let Some(repeated) = open.iter().find(|id| !ever_called.insert(**id)) {
            return Err(format!(
                "messages.{number}: tool_use ids must be unique, {repeated} is not"
            ));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(messages.len() - 1, &open)) }
}

fn check_answers(number: usize, message: &Value, open: &[&str]) -> Result<(), String> {
    let answered = ids(message, "tool_result", "tool_use_id");
    let mut seen = HashSet::new();
    for id in &answered {
        if !open.contains(id) {
            return Err(format!(
                "messages.{number}: unexpected tool_use_id found in tool_result blocks: {id}. \
                 Each tool_result block must have a corresponding tool_use block in the previous message"
            ));
        }
        if !seen.insert(*id) {
            return Err(format!(
                "messages.{number}: each tool_use must have a single result, {id} has several"
            ));
        }
    }
    let missing: Vec<&str> = open.iter().copied().filter(|id| !seen.contains(id)).collect();
    if !missing.is_empty() {
        return Err(unanswered(number - 1, &missing));
    }
    let content = blocks(&message["content"]);
    match content.iter().take(answered.len()).find(|block| block["type"] != "tool_result") {
        Some(_) => {
            Err(format!("messages.{number}: tool_result blocks must come before any other content"))
        }
        None => Ok(()),
    }
}

fn unanswered(number: usize, ids: &[&str]) -> String {
    format!(
        "messages.{number}: tool_use ids were found without tool_result blocks immediately after: {}. \
         Each tool_use block must have a corresponding tool_result block in the next message",
        ids.join(", ")
    )
}

fn ids<'a>(message: &'a Value, kind: &str, field: &str) -> Vec<&'a str> {
    let matching = blocks(&message["content"]).iter().filter(|block| block["type"] == kind);
    matching.filter_map(|block| block[field].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(messages: Value) -> String {
        let body = json!({"model": "m", "max_tokens": 1, "messages": messages});
        check_message_request(&body).err().unwrap_or_else(|| "valid".to_owned())
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn calls(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}}))
            .collect();
        json!({"role": "assistant", "content": calls})
    }

    fn results(ids: &[&str]) -> Value {
        let results: Vec<Value> = ids
            .iter()
            .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "x"}))
            .collect();
        json!({"role": "user", "content": results})
    }

    #[test]
    fn a_whole_conversation_with_parallel_calls_is_valid() {
        assert_eq!(
            check(json!([user("a"), calls(&["1", "2"]), results(&["2", "1"]), user("b")])),
            "valid"
        );
    }

    #[test]
    fn a_call_without_a_result_is_named() {
        let missing = check(json!([user("a"), calls(&["1", "2"]), results(&["1"])]));
        assert!(
            missing.starts_with("messages.1: tool_use ids were found without")
                && missing.contains(": 2.")
        );
        assert!(check(json!([user("a"), calls(&["7"])])).contains("immediately after: 7."));
        assert!(
            check(json!([user("a"), calls(&["7"]), user("b")])).contains("immediately after: 7.")
        );
    }

    #[test]
    fn a_result_without_a_call_is_named() {
        let unknown = check(json!([user("a"), calls(&["1"]), results(&["1", "9"])]));
        assert!(
            unknown
                .starts_with("messages.2: unexpected tool_use_id found in tool_result blocks: 9"),
            "{unknown}"
        );
        let late = check(json!([user("a"), calls(&["1"]), results(&["1"]), results(&["1"])]));
        assert!(late.starts_with("messages.3: unexpected tool_use_id"), "{late}");
    }

    #[test]
    fn a_call_is_answered_once_and_its_id_is_used_once() {
        assert!(
            check(json!([user("a"), calls(&["1"]), results(&["1", "1"])]))
                .contains("single result, 1 has several")
        );
        let reused = check(json!([
            user("a"),
            calls(&["1"]),
            results(&["1"]),
            calls(&["1"]),
            results(&["1"])
        ]));
        assert_eq!(reused, "messages.3: tool_use ids must be unique, 1 is not");
    }

    #[test]
    fn results_must_precede_text() {
        let mut late = results(&["1"]);
        late["content"].as_array_mut().unwrap().insert(0, json!({"type": "text", "text": "first"}));
        let error = check(json!([user("a"), calls(&["1"]), late]));
        assert_eq!(error, "messages.2: tool_result blocks must come before any other content");
    }

    #[test]
    fn roles_and_contents_are_checked() {
        assert!(check(json!([{"role": "system", "content": "x"}])).contains("not \"system\""));
    }

    /// The vendor's CLI sends them to its newest models. Mutant: the role refused everywhere.
    #[test]
    fn a_system_message_is_allowed_in_the_middle_and_at_the_end() {
        let system = |content: Value| json!({"role": "system", "content": content});
        let text = json!([{"type": "text", "text": "Be brief."}]);
        let with = |system: &Value| {
            check(json!([user("a"), system, calls(&["1"]), results(&["1"]), system]))
        };
        for content in [json!("Be brief."), text] {
            assert_eq!(with(&system(content)), "valid");
        }
        assert!(with(&system(json!(""))).contains("must not be empty"));
        assert!(with(&results(&["1"])).contains("unexpected tool_use_id"));
        let picture = system(json!([{"type": "image", "source": {}}]));
        assert!(with(&picture).contains("has text"));
        let between = json!([user("a"), calls(&["1"]), system(json!("x")), results(&["1"])]);
        assert!(check(between).contains("without tool_result blocks immediately after"));
        assert!(check(json!([{"content": "x"}])).contains("role: Field required"));
        assert!(
            check(json!([{"role": "assistant", "content": "x"}]))
                .contains("first message must use")
        );
        assert!(check(json!([user("")])).contains("must not be empty"));
        assert!(check(json!([{"role": "user", "content": []}])).contains("must not be empty"));
        assert!(check(json!([{"role": "user", "content": 3}])).contains("a string or a list"));
        assert!(
            check(json!([{"role": "user", "content": [{"type": "text", "text": ""}]}]))
                .contains("text.text")
        );
        assert!(
            check(json!([{"role": "user", "content": [{"text": "a"}]}])).contains("content.0.type")
        );
        assert!(
            check(json!([{"role": "user", "content": [{"type": "tool_use"}]}]))
                .contains("of the user")
        );
        assert!(check(json!([])).contains("at least one message"));
    }

    #[test]
    fn model_messages_and_max_tokens_are_required() {
        let error = |body: Value| check_message_request(&body).unwrap_err();
        assert_eq!(
            error(json!({"messages": [user("a")], "max_tokens": 1})),
            "model: Field required"
        );
        assert_eq!(error(json!({"model": "m", "max_tokens": 1})), "messages: Field required");
        assert_eq!(
            error(json!({"model": "m", "messages": [user("a")]})),
            "max_tokens: Field required"
        );
        assert!(error(json!([])).contains("JSON object"));
        let tools =
            json!({"model": "m", "messages": [user("a")], "tools": [{"name": "A"}, {"name": "A"}]});
        assert!(check_countable_request(&tools).unwrap_err().contains("A is not"));
    }
}
