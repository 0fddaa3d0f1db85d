//! Reads a Messages API request body: prompt, turn, tools, results.
//!
//! Everything that reads a request uses [`Conversation`], so that rules, templates, recorded requests and error
//! reports agree on what "the prompt" or "the tool results" are. It never fails: an invalid body simply has no
//! messages. `validate` checks validity.

use serde::Serialize;
use serde_json::Value;

/// Text blocks that start with this are notes of the agent's harness, not text of the user.
const HARNESS_NOTE: &str = "<system-reminder>";

/// A borrowed view of one request body.
#[derive(Clone, Copy)]
pub(crate) struct Conversation<'a>(&'a Value);

impl<'a> Conversation<'a> {
    pub(crate) fn of(body: &'a Value) -> Self {
        Self(body)
    }

    pub(crate) fn messages(self) -> &'a [Value] {
        self.0["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn model(self) -> &'a str {
        self.0["model"].as_str().unwrap_or_default()
    }

    pub(crate) fn streaming(self) -> bool {
        self.0["stream"].as_bool().unwrap_or(false)
    }

    /// How many assistant messages the conversation has.
    pub(crate) fn turn(self) -> usize {
        self.messages().iter().filter(|message| message["role"] == "assistant").count()
    }

    pub(crate) fn system_text(self) -> String {
        text_of(&self.0["system"])
    }

    pub(crate) fn tool_names(self) -> Vec<&'a str> {
        let tools = self.0["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
    }

    /// The text of the newest user message with text, without tool results and harness notes.
    pub(crate) fn prompt(self) -> String {
        let users = self.messages().iter().rev().filter(|message| message["role"] == "user");
        users
            .map(|message| user_text(&message["content"]))
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    /// The tool results in the last message. Instructions after it are ignored.
    pub(crate) fn tool_results(self) -> Vec<ToolResult> {
        let last = self.messages().iter().rev().find(|message| message["role"] != "system");
        last.map(|message| self.results_in(message)).unwrap_or_default()
    }

    /// The text of the newest tool result anywhere in the conversation.
    pub(crate) fn newest_tool_result(self) -> String {
        let newest =
            self.messages().iter().rev().find_map(|message| self.results_in(message).pop());
        newest.map(|result| result.text).unwrap_or_default()
    }

    /// Whether any string in the messages contains `needle`, tool inputs and results included.
    pub(crate) fn mentions(self, needle: &str) -> bool {
        self.messages().iter().any(|message| any_string(message, &|text| text.contains(needle)))
    }

    /// The first message, which distinguishes this conversation from others.
    pub(crate) fn identity(self) -> String {
        self.messages().first().map(Value::to_string).unwrap_or_default()
    }

    fn results_in(self, message: &'a Value) -> Vec<ToolResult> {
        let results =
            blocks(&message["content"]).iter().filter(|block| block["type"] == "tool_result");
        results.map(|block| self.result(block)).collect()
    }

    fn result(self, block: &'a Value) -> ToolResult {
        let tool_use_id = block["tool_use_id"].as_str().unwrap_or_default();
        ToolResult {
            tool_use_id: tool_use_id.to_owned(),
            tool_name: self.tool_called(tool_use_id).map(str::to_owned),
            text: text_of(&block["content"]),
            is_error: block["is_error"].as_bool().unwrap_or(false),
        }
    }

    fn tool_called(self, tool_use_id: &str) -> Option<&'a str> {
        let mut every_block =
            self.messages().iter().flat_map(|message| blocks(&message["content"]));
        let call =
            every_block.find(|block| block["type"] == "tool_use" && block["id"] == tool_use_id)?;
        call["name"].as_str()
    }
}

/// One tool result as the model would see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolResult {
    /// The id of the call this answers.
    pub tool_use_id: String,
    /// The tool that was called, if the conversation still contains the call.
    pub tool_name: Option<String>,
    /// The text blocks of the result, joined by newlines.
    pub text: String,
    /// Whether the result is marked as an error.
    pub is_error: bool,
}

/// The content blocks of a message; none when the content is a plain string.
pub(crate) fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a string, or of all text blocks of a list joined by newlines.
pub(crate) fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    text_blocks(content).collect::<Vec<_>>().join("\n")
}

fn user_text(content: &Value) -> String {
    let plain = content.as_str().into_iter();
    let texts = plain
        .chain(text_blocks(content))
        .filter(|text| !text.trim_start().starts_with(HARNESS_NOTE));
    texts.collect::<Vec<_>>().join("\n")
}

fn text_blocks(content: &Value) -> impl Iterator<Item = &str> {
    blocks(content)
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
}

fn any_string(value: &Value, accepts: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => accepts(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, accepts)),
        Value::Object(fields) => fields.values().any(|field| any_string(field, accepts)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_prompt_is_the_newest_user_text_without_tool_results_and_harness_notes() {
        let body = json!({"messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>be brief</system-reminder>"},
                {"type": "text", "text": "second"},
                {"type": "text", "text": "line"},
            ]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "out"}]},
        ]});
        assert_eq!(Conversation::of(&body).prompt(), "second\nline");
    }

    #[test]
    fn a_tool_result_names_the_tool_that_was_called() {
        let body = json!({"messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true,
                 "content": [{"type": "text", "text": "no"}]},
            ]},
        ]});
        let results = Conversation::of(&body).tool_results();
        assert_eq!(results[0].tool_name.as_deref(), Some("Read"));
        assert_eq!((results[0].text.as_str(), results[0].is_error), ("no", true));
    }

    #[test]
    fn an_invalid_body_has_no_messages() {
        let body = json!([1, 2]);
        assert!(Conversation::of(&body).messages().is_empty());
        assert_eq!(Conversation::of(&body).prompt(), "");
    }
}
