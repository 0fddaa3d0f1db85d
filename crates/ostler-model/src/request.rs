//! A request to a model, and how it is written as the body of a Messages API call.

use std::borrow::Cow;
use std::sync::Arc;

use ostler_proto::api::{ContentBlock, Role};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::alias::without_suffix;
use super::cache::{self, Cache, CacheControl};
use super::server_tool::ServerTool;
use super::thinking::{self, Effort, Thinking, ThinkingBody, ThinkingDisplay};

/// A request to a model. Serialises to the body of a Messages API call.
///
/// A later request of a conversation begins with the same bytes as the earlier one, so that the vendor's cache
/// hits: the fields are in the order in which they change. Only the cache markers move; the vendor does not count them
/// as content.
///
/// Large parts are shared with the caller, so that a request does not copy the conversation.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model to ask.
    pub model: String,
    /// The most tokens of the answer.
    pub max_tokens: u64,
    /// Whether to stream the answer. If not, the answer is one [`ModelEvent::Whole`](super::ModelEvent::Whole).
    pub stream: bool,
    /// The tools on offer.
    pub tools: Arc<Vec<ToolSpec>>,
    /// Tools that the API runs itself.
    pub server_tools: Vec<ServerTool>,
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation so far, user first.
    pub messages: Arc<Vec<ChatMessage>>,
    /// How to answer.
    pub sampling: Sampling,
}

/// Enough for long files; all current models allow it.
const MAX_OUTPUT_TOKENS: u64 = 32_000;

impl Request {
    /// A streaming request without tools and system prompt, with the default limit.
    pub fn new(model: impl Into<String>, messages: Vec<ChatMessage>) -> Self {
        Self {
            model: model.into(),
            max_tokens: MAX_OUTPUT_TOKENS,
            stream: true,
            tools: Arc::default(),
            server_tools: Vec::new(),
            system: Arc::default(),
            messages: Arc::new(messages),
            sampling: Sampling::default(),
        }
    }
}

/// Options for the answer. Those that the model does not support are left out of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Whether and how much to think first; the model's default when absent.
    pub thinking: Option<Thinking>,
    /// How much of the thinking to show; the model's default when absent, which for the newest ones is nothing.
    pub display: Option<ThinkingDisplay>,
    /// The effort; the model's default when absent.
    pub effort: Option<Effort>,
    /// How many tokens the whole task may take. The API passes this to the model; a beta feature.
    pub task_budget: Option<u64>,
    /// An opaque name of the user, by which the vendor can find abuse.
    pub user_id: Option<String>,
    /// How long the vendor keeps the beginning of the conversation ready.
    pub cache: Cache,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChatMessage {
    /// Its author.
    pub role: Role,
    /// Its blocks.
    pub content: Vec<ContentBlock>,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Value,
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Body::of(self).serialize(serializer)
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Cacheable<OfferedTool<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Cacheable<TextBody<'a>>; 1]>,
    messages: Vec<Cow<'a, ChatMessage>>,
}

impl<'a> Body<'a> {
    fn of(request: &'a Request) -> Self {
        let Request { stream, tools, system, messages, sampling, .. } = request;
        // A header asks for the large context window.
        let model = without_suffix(&request.model);
        let (thinking, effort) = thinking::fit(sampling, model, request.max_tokens);
        let mark = sampling.cache.mark();
        let last = (tools.len() + request.server_tools.len()).saturating_sub(1);
        let server_tools = request.server_tools.iter().map(OfferedTool::Server);
        let tools = tools.iter().map(OfferedTool::Client).chain(server_tools);
        let tools = tools.enumerate().map(|(number, tool)| Cacheable {
            content: tool,
            cache_control: mark.filter(|_| number == last),
        });
        let text = TextBody { r#type: "text", text: system };
        Self {
            model,
            max_tokens: request.max_tokens,
            stream: *stream,
            thinking,
            output_config: OutputConfig::of(effort, sampling.task_budget),
            metadata: sampling.user_id.as_deref().map(|user_id| Metadata { user_id }),
            tools: tools.collect(),
            // The API refuses an empty text.
            system: (!system.is_empty())
                .then_some([Cacheable { content: text, cache_control: mark }]),
            messages: cache::marked(messages, mark),
        }
    }
}

/// A tool, run by the client or by the API.
#[derive(Serialize)]
#[serde(untagged)]
enum OfferedTool<'a> {
    Client(&'a ToolSpec),
    Server(&'a ServerTool),
}

#[derive(Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_budget: Option<TaskBudget>,
}

impl OutputConfig {
    fn of(effort: Option<Effort>, task_budget: Option<u64>) -> Option<Self> {
        let task_budget = task_budget.map(|total| TaskBudget { r#type: "tokens", total });
        (effort.is_some() || task_budget.is_some()).then_some(Self { effort, task_budget })
    }
}

#[derive(Serialize)]
struct TaskBudget {
    r#type: &'static str,
    total: u64,
}

#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

#[derive(Serialize)]
struct TextBody<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// A part of a request with an optional cache marker.
#[derive(Serialize)]
struct Cacheable<T> {
    #[serde(flatten)]
    content: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> Request {
        let said = ChatMessage { role: Role::User, content: vec![ContentBlock::text("hi")] };
        Request::new("claude-opus-5", vec![said])
    }

    #[test]
    fn a_plain_request_has_only_required_fields() {
        let mark = json!({"type": "ephemeral"});
        let content = json!([{"type": "text", "text": "hi", "cache_control": mark}]);
        assert_eq!(
            serde_json::to_value(request()).unwrap(),
            json!({"model": "claude-opus-5", "max_tokens": 32_000, "stream": true,
                "messages": [{"role": "user", "content": content}]})
        );
    }

    #[test]
    fn all_fields_are_written_in_their_order() {
        let tool = |name: &str| ToolSpec {
            name: name.into(),
            description: "d".into(),
            input_schema: json!({"type": "object"}),
        };
        let request = Request {
            stream: false,
            tools: vec![tool("A"), tool("B")].into(),
            system: "Be kind.".into(),
            sampling: Sampling {
                thinking: Some(Thinking::Adaptive),
                display: Some(ThinkingDisplay::Summarized),
                effort: Some(Effort::High),
                task_budget: Some(5000),
                user_id: Some("u".into()),
                cache: Cache::OneHour,
            },
            ..request()
        };
        let mark = r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#;
        let schema = r#""description":"d","input_schema":{"type":"object"}"#;
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            [
                r#"{"model":"claude-opus-5","max_tokens":32000,"stream":false,"#,
                r#""thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high","task_budget":{"type":"tokens","total":5000}},"#,
                r#""metadata":{"user_id":"u"},"#,
                &format!(r#""tools":[{{"name":"A",{schema}}},{{"name":"B",{schema},{mark}}}],"#),
                &format!(r#""system":[{{"type":"text","text":"Be kind.",{mark}}}],"#),
                &format!(r#""messages":[{{"role":"user","content":[{{"type":"text","text":"hi",{mark}}}]}}]}}"#),
            ]
            .concat()
        );
    }
}
