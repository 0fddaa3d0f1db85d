//! Tests of the offline model, and the conversations they share.

mod conversations;
mod events;
mod properties;
mod questions;
mod sentences;
mod shapes;

use std::sync::Arc;

use ostler_proto::api::{Content, ContentBlock, Role, StopReason, ToolResultBlock, ToolUseBlock};
use ostler_proto::build;
use serde_json::json;

use super::reply::{OfflineResponse, answer};
use crate::{ChatMessage, Request, Sampling, ToolSpec};

const TOOLS: [&str; 8] =
    ["Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "Read", "Write"];

/// A conversation with the model, with invented results.
struct Conversation {
    request: Request,
}

impl Conversation {
    fn new() -> Self {
        Self::with_tools(&TOOLS)
    }

    fn with_tools(tools: &[&str]) -> Self {
        let spec = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
        };
        Self {
            request: Request {
                model: "offline-demo".to_owned(),
                max_tokens: 1000,
                stream: true,
                server_tools: Vec::new(),
                tools: Arc::new(tools.iter().map(spec).collect()),
                system: "You are a test.".into(),
                messages: Arc::default(),
                sampling: Sampling::default(),
            },
        }
    }

    /// The user sends a prompt, and the model answers.
    fn say(&mut self, text: &str) -> TestReply {
        self.push(Role::User, vec![ContentBlock::text(text)]);
        self.answered()
    }

    /// All calls of the last answer return the same, and the model continues.
    fn returns(&mut self, text: &str) -> TestReply {
        self.results(text, None)
    }

    /// All calls of the last answer fail, and the model continues.
    fn fails(&mut self, text: &str) -> TestReply {
        self.results(text, Some(true))
    }

    fn results(&mut self, text: &str, is_error: Option<bool>) -> TestReply {
        let calls =
            self.request.messages.last().map(|said| said.content.clone()).unwrap_or_default();
        let results = calls
            .iter()
            .filter_map(ContentBlock::as_tool_use)
            .map(|call| result(call, text, is_error));
        let results = results.collect();
        self.push(Role::User, results);
        self.answered()
    }

    fn answered(&mut self) -> TestReply {
        let answer = answer(&self.request);
        self.push(Role::Assistant, answer.blocks.clone());
        TestReply(answer)
    }

    fn push(&mut self, role: Role, content: Vec<ContentBlock>) {
        Arc::make_mut(&mut self.request.messages).push(ChatMessage { role, content });
    }
}

fn result(call: &ToolUseBlock, text: &str, is_error: Option<bool>) -> ContentBlock {
    ContentBlock::ToolResult(build!(ToolResultBlock {
        tool_use_id: call.id.clone(),
        content: Some(Content::from(text)),
        is_error
    }))
}

/// One answer.
struct TestReply(OfflineResponse);

impl TestReply {
    fn text(&self) -> String {
        self.0.blocks.iter().filter_map(ContentBlock::as_text).collect()
    }

    fn calls(&self) -> Vec<&ToolUseBlock> {
        self.0.blocks.iter().filter_map(ContentBlock::as_tool_use).collect()
    }

    /// Fails unless the answer is exactly these calls.
    #[track_caller]
    fn calls_exactly(&self, expected: &[(&str, serde_json::Value)]) {
        let calls: Vec<(&str, serde_json::Value)> =
            self.calls().into_iter().map(|call| (call.name.as_str(), call.input.clone())).collect();
        assert_eq!(calls, expected, "{}", self.text());
        assert_eq!(self.0.stop_reason, StopReason::ToolUse);
    }

    /// Fails unless the answer ends the turn and contains this text.
    #[track_caller]
    fn ends_with_words(&self, words: &str) {
        assert!(self.calls().is_empty(), "{:?}", self.calls());
        assert_eq!(self.0.stop_reason, StopReason::EndTurn);
        assert!(self.text().contains(words), "{}", self.text());
    }
}
