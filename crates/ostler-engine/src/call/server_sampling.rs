//! A server that asks the model (sampling). Its request is a call of a tool that no model is offered, so hooks, rules,
//! mode and user decide on it as on every call, and everything but a clear yes is a no.

use std::sync::Arc;

use futures::FutureExt as _;
use ostler_proto::api::{ContentBlock, Message, Role, StopReason, ToolUseBlock};
use ostler_proto::build;
use ostler_proto::mcp::McpServerProvenance;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::drive::TurnContext;
use crate::ids::fresh_uuid;
use crate::model::{ChatMessage, Request, ToolSpec};
use crate::tool::{AnyTool, Effect, Prepared, ServerToolPolicy, ToolCx, ToolError, ToolOutput};

/// The name in permission rules and questions.
const NAME: &str = "McpSampling";
/// The most messages of a request, and the most bytes of all its content.
const MOST_MESSAGES: usize = 100;
const MOST_BYTES: usize = 1024 * 1024;
/// The most tokens of an answer.
const MOST_TOKENS: u64 = 8192;

/// Asks the model for a server, if that is permitted. `params` are those of `sampling/createMessage`.
///
/// # Errors
/// Why there is no answer, as text for the server.
pub(crate) async fn sample(
    context: &TurnContext,
    server: String,
    params: Value,
) -> Result<Value, String> {
    let input = shown(&params)?;
    let id = fresh_uuid().to_string().into();
    let call = build!(ToolUseBlock { id, name: NAME.to_owned(), input });
    let mut context = context.for_call(&call);
    let tool: Arc<dyn AnyTool> = Arc::new(Sampling { server });
    Arc::make_mut(&mut context.tools).insert(NAME.to_owned(), tool);
    context.cx.cancelled = CancellationToken::new();
    let _stopped = context.cx.cancelled.clone().drop_guard();
    let result = super::run(&context, call).await.block;
    let text = result.content.map(|content| content.text()).unwrap_or_default();
    match result.is_error {
        Some(true) => Err(text),
        _ => {
            serde_json::from_str(&text).map_err(|error| format!("the answer was changed: {error}"))
        }
    }
}

/// The part of a request that counts, which is what the user decides on.
fn shown(params: &Value) -> Result<Value, String> {
    if params.to_string().len() > MOST_BYTES {
        return Err(format!("the request has more than {MOST_BYTES} bytes"));
    }
    if params.get("tools").is_some() {
        return Err("this client does not offer tools for sampling".to_owned());
    }
    let mut shown = json!({"messages": params["messages"]});
    for key in ["systemPrompt", "maxTokens"] {
        if let Some(value) = params.get(key).filter(|value| !value.is_null()) {
            shown[key] = value.clone();
        }
    }
    read(&shown).map(|_| shown)
}

/// The request for the model.
fn read(input: &Value) -> Result<Request, String> {
    let messages = input["messages"].as_array().ok_or("`messages` is not a list")?;
    if messages.is_empty() || messages.len() > MOST_MESSAGES {
        return Err(format!("`messages` must have 1 to {MOST_MESSAGES} entries"));
    }
    let messages = messages.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    let mut request = Request::new("", messages);
    request.max_tokens = input["maxTokens"].as_u64().unwrap_or(MOST_TOKENS).clamp(1, MOST_TOKENS);
    request.system = input["systemPrompt"].as_str().unwrap_or_default().into();
    Ok(request)
}

fn message(message: &Value) -> Result<ChatMessage, String> {
    let role = match message["role"].as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err("the `role` of a message must be user or assistant".to_owned()),
    };
    let blocks = match &message["content"] {
        Value::Array(blocks) => blocks.iter().map(block).collect::<Result<Vec<_>, _>>()?,
        one => vec![block(one)?],
    };
    match blocks.is_empty() {
        true => Err("a message has no content".to_owned()),
        false => Ok(ChatMessage { role, content: blocks }),
    }
}

fn block(content: &Value) -> Result<ContentBlock, String> {
    let text = |key: &str| content[key].as_str().filter(|text| !text.trim().is_empty());
    match (content["type"].as_str(), text("text"), text("data"), text("mimeType")) {
        (Some("text"), Some(text), ..) => Ok(ContentBlock::text(text)),
        (Some("image"), _, Some(data), Some(kind)) => {
            let source = json!({"type": "base64", "media_type": kind, "data": data});
            let image = json!({"type": "image", "source": source});
            serde_json::from_value(image).map_err(|error| error.to_string())
        }
        (kind, ..) => Err(format!(
            "the content of a message must be text or an image, and not empty; it is {}",
            kind.unwrap_or("something else")
        )),
    }
}

/// The answer for the server.
fn answer(message: &Message) -> Value {
    let texts = message.content.iter().filter_map(ContentBlock::as_text);
    let reason = match &message.stop_reason {
        Some(StopReason::MaxTokens) => "maxTokens",
        Some(StopReason::StopSequence) => "stopSequence",
        _ => "endTurn",
    };
    json!({
        "role": "assistant", "model": message.model, "stopReason": reason,
        "content": {"type": "text", "text": texts.collect::<Vec<_>>().join("\n")},
    })
}

struct Sampling {
    server: String,
}

impl AnyTool for Sampling {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
        }
    }

    fn provenance(&self) -> Option<McpServerProvenance> {
        Some(build!(McpServerProvenance { name: self.server.clone(), source: String::new() }))
    }

    fn without_host_only(&self, input: &Value) -> Value {
        input.clone()
    }

    fn prepare(self: Arc<Self>, _: &ToolCx, input: &Value) -> Result<Prepared, String> {
        let request = read(input)?;
        Ok(Prepared {
            effect: Effect::Outside { changes: false, policy: ServerToolPolicy::Unset },
            run: Box::new(move |cx| {
                async move {
                    let failed = |reason: String| ToolError::Failed(reason);
                    let session =
                        cx.session.ok_or_else(|| failed("there is no model".to_owned()))?;
                    let asked = session.ask_model(request).await;
                    let message = asked.map_err(|error| failed(error.to_string()))?;
                    let answer = answer(&message);
                    Ok(ToolOutput::new(answer.to_string(), answer))
                }
                .boxed()
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: `shown` passes on everything.
    #[test]
    fn only_what_the_user_sees_reaches_the_model_and_only_text_and_images() {
        let text = json!({"type": "text", "text": "hi"});
        let params = json!({"messages": [{"role": "user", "content": text}], "systemPrompt": "Be brief.",
            "maxTokens": 1_000_000, "includeContext": "allServers", "temperature": 9});
        let shown_ = shown(&params).unwrap();
        assert_eq!(shown_.as_object().unwrap().len(), 3, "{shown_}");
        let request = read(&shown_).unwrap();
        assert_eq!((request.max_tokens, &*request.system), (MOST_TOKENS, "Be brief."));
        assert_eq!(request.messages.len(), 1);
        let with = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        assert!(shown(&with(json!([text, image]))).is_ok());
        let many = vec![json!({"role": "user", "content": text}); MOST_MESSAGES + 1];
        for odd in [
            with(json!({"type": "text", "text": " "})),
            with(json!({"type": "audio", "data": "x", "mimeType": "audio/wav"})),
            with(json!([])),
            with(json!({"type": "text", "text": "x".repeat(MOST_BYTES)})),
            json!({"messages": [{"role": "system", "content": text}]}),
            json!({"messages": []}),
            json!({"messages": many}),
            json!({"messages": [{"role": "user", "content": text}], "tools": []}),
            json!({}),
        ] {
            assert!(shown(&odd).is_err(), "{:.200}", odd.to_string());
        }
    }
}
