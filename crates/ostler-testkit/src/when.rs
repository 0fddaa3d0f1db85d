//! The condition of a rule, and the reason why a request does not meet it.

use serde::Deserialize;

use crate::conversation::{Conversation, ToolResult};
use crate::transcript::shortened;

/// Starts a condition that every request meets; restrict it with the methods of [`When`].
pub fn when() -> When {
    When::default()
}

/// The condition of a rule. All its parts must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    prompt: Option<String>,
    any_text: Option<String>,
    system: Option<String>,
    turn: Option<usize>,
    model: Option<String>,
    tool_result: Option<ResultCondition>,
    tool_result_of: Option<String>,
    tool_error: Option<bool>,
    tools: Vec<String>,
    streaming: Option<bool>,
}

impl When {
    /// The prompt contains `text`. The prompt is the text of the newest user message with text: its text blocks joined
    /// by newlines, without tool results and without blocks that start with `<system-reminder>`.
    pub fn prompt_contains(mut self, text: impl Into<String>) -> Self {
        self.prompt = Some(text.into());
        self
    }

    /// A string in the messages contains `text`; tool inputs and tool results count.
    pub fn any_text_contains(mut self, text: impl Into<String>) -> Self {
        self.any_text = Some(text.into());
        self
    }

    /// The system prompt contains `text`.
    pub fn system_contains(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into());
        self
    }

    /// The conversation has this many assistant messages: 0 for the first request.
    pub fn turn(mut self, turn: usize) -> Self {
        self.turn = Some(turn);
        self
    }

    /// The model has this name. A name that ends in `*` is a prefix.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// The last message has tool results, or has none.
    pub fn has_tool_result(mut self, present: bool) -> Self {
        self.tool_result = Some(ResultCondition::Present(present));
        self
    }

    /// A tool result in the last message contains `text`.
    pub fn tool_result_contains(mut self, text: impl Into<String>) -> Self {
        self.tool_result = Some(ResultCondition::Contains(text.into()));
        self
    }

    /// The last message has a result of the tool with this name.
    pub fn tool_result_of(mut self, tool: impl Into<String>) -> Self {
        self.tool_result_of = Some(tool.into());
        self
    }

    /// The last message has a tool result marked as an error, or has none.
    pub fn has_tool_error(mut self, present: bool) -> Self {
        self.tool_error = Some(present);
        self
    }

    /// The request offers a tool of this name to the model. Repeat it to require several.
    pub fn offers_tool(mut self, name: impl Into<String>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// The request asks for a stream, or does not.
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = Some(streaming);
        self
    }

    /// The first reason why the request does not meet this condition.
    pub(crate) fn mismatch(&self, request: Conversation<'_>) -> Option<String> {
        self.text_mismatch(request)
            .or_else(|| self.shape_mismatch(request))
            .or_else(|| self.result_mismatch(request))
    }

    fn text_mismatch(&self, request: Conversation<'_>) -> Option<String> {
        if let Some(text) = self.prompt.as_ref().filter(|text| !request.prompt().contains(*text)) {
            return Some(format!("prompt does not contain {text:?}"));
        }
        if let Some(text) = self.any_text.as_ref().filter(|text| !request.mentions(text)) {
            return Some(format!("no message contains {text:?}"));
        }
        let system = self.system.as_ref().filter(|text| !request.system_text().contains(*text));
        system.map(|text| format!("system prompt does not contain {text:?}"))
    }

    fn shape_mismatch(&self, request: Conversation<'_>) -> Option<String> {
        if let Some(turn) = self.turn.filter(|turn| *turn != request.turn()) {
            return Some(format!("turn is {}, not {turn}", request.turn()));
        }
        if let Some(model) =
            self.model.as_ref().filter(|model| !fits_pattern(model, request.model()))
        {
            return Some(format!("model is {:?}, not {model:?}", request.model()));
        }
        let offered = request.tool_names();
        if let Some(missing) = self.tools.iter().find(|name| !offered.contains(&name.as_str())) {
            return Some(format!("tool {missing:?} is not offered"));
        }
        match self.streaming.filter(|streaming| *streaming != request.streaming()) {
            Some(true) => Some("request does not ask for a stream".to_owned()),
            Some(false) => Some("request asks for a stream".to_owned()),
            None => None,
        }
    }

    fn result_mismatch(&self, request: Conversation<'_>) -> Option<String> {
        let results = request.tool_results();
        if let Some(reason) =
            self.tool_result.as_ref().and_then(|condition| condition.mismatch(&results))
        {
            return Some(reason);
        }
        if let Some(tool) = &self.tool_result_of
            && !results.iter().any(|result| result.tool_name.as_ref() == Some(tool))
        {
            return Some(format!("last message has no result of tool {tool:?}"));
        }
        let has_error = results.iter().any(|result| result.is_error);
        match self.tool_error.filter(|wanted| *wanted != has_error) {
            Some(true) => Some("last message has no tool result marked as an error".to_owned()),
            Some(false) => Some("last message has a tool result marked as an error".to_owned()),
            None => None,
        }
    }
}

/// The condition on tool results in the last message: `true`, `false`, or a text that one of them contains.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "tool_result must be true, false or a text")]
enum ResultCondition {
    Present(bool),
    Contains(String),
}

impl ResultCondition {
    fn mismatch(&self, results: &[ToolResult]) -> Option<String> {
        match self {
            Self::Present(true) if results.is_empty() => {
                Some("last message has no tool result".to_owned())
            }
            Self::Present(false) if !results.is_empty() => {
                Some("last message has tool results".to_owned())
            }
            Self::Contains(text) if !results.iter().any(|result| result.text.contains(text)) => {
                let seen: Vec<String> =
                    results.iter().map(|result| shortened(&result.text)).collect();
                Some(format!(
                    "no tool result in the last message contains {text:?}, there are {seen:?}"
                ))
            }
            _ => None,
        }
    }
}

fn fits_pattern(pattern: &str, model: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => model.starts_with(start),
        None => model == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request() -> Value {
        json!({
            "model": "claude-test-1", "stream": true, "system": [{"type": "text", "text": "Be kind."}],
            "tools": [{"name": "Bash"}, {"name": "Read"}],
            "messages": [
                {"role": "user", "content": "list files"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt", "is_error": true},
                ]},
            ],
        })
    }

    fn check(condition: When, expected: Option<&str>) {
        let request = request();
        let mismatch = condition.mismatch(Conversation::of(&request));
        assert_eq!(mismatch.as_deref(), expected);
    }

    #[test]
    fn a_condition_whose_parts_all_hold_matches() {
        let all =
            when().prompt_contains("list").any_text_contains("ls").system_contains("kind").turn(1);
        let all = all
            .model("claude-test-*")
            .tool_result_contains("a.txt")
            .tool_result_of("Bash")
            .has_tool_error(true);
        check(all.offers_tool("Bash").offers_tool("Read").streaming(true), None);
        check(when().model("claude-test-1").has_tool_result(true), None);
        check(when(), None);
    }

    #[test]
    fn each_condition_has_a_reason_why_it_does_not_hold() {
        check(when().prompt_contains("delete"), Some("prompt does not contain \"delete\""));
        check(when().any_text_contains("rm"), Some("no message contains \"rm\""));
        check(when().system_contains("rude"), Some("system prompt does not contain \"rude\""));
        check(when().turn(0), Some("turn is 1, not 0"));
        check(when().model("claude-test"), Some("model is \"claude-test-1\", not \"claude-test\""));
        check(when().model("other-*"), Some("model is \"claude-test-1\", not \"other-*\""));
        check(when().offers_tool("Edit"), Some("tool \"Edit\" is not offered"));
        check(when().streaming(false), Some("request asks for a stream"));
        check(when().has_tool_result(false), Some("last message has tool results"));
        check(
            when().tool_result_contains("b.txt"),
            Some("no tool result in the last message contains \"b.txt\", there are [\"a.txt\"]"),
        );
        check(when().tool_result_of("Read"), Some("last message has no result of tool \"Read\""));
        check(
            when().has_tool_error(false),
            Some("last message has a tool result marked as an error"),
        );
    }
}
