//! The client's tools, as an MCP server in this process. A call of one of them waits for the client.

use std::collections::BTreeMap;

use ostler::mcp::{Content as McpContent, Output, Server, raw_tool};
use ostler::proto::api::{ContentBlock, Source};
use ostler_agui::input::Tool;
use ostler_agui::message::Content;
use ostler_agui::prompt;
use ostler_core::runs::ask::Waiters;
use serde_json::{Value, json};

use super::client_tool_calls::ClientToolCalls;

/// The name of the server.
const SERVER: &str = "ag_ui";

/// The client's tools for one session.
#[derive(Clone, Debug, Default)]
pub(super) struct FrontendTools {
    /// Their own names, by their names for the model.
    pub(super) names: BTreeMap<String, String>,
    tools: Vec<Tool>,
}

impl FrontendTools {
    /// Takes the tools that the client offers. Of two with the same name for the model, the first counts.
    pub(super) fn new(offered: &[Tool]) -> Self {
        let mut it = Self::default();
        for tool in offered {
            let known_as = model_name(&tool.name);
            if let std::collections::btree_map::Entry::Vacant(free) = it.names.entry(known_as) {
                free.insert(tool.name.clone());
                it.tools.push(tool.clone());
            }
        }
        it
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub(super) fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// The MCP server whose tools wait for the page.
    pub(super) fn server(&self, tool_calls: &ClientToolCalls, waiters: &Waiters) -> Server {
        let server = Server::new(SERVER, env!("CARGO_PKG_VERSION"));
        self.tools.iter().fold(server, |server, tool| {
            let (tool_calls, waiters) = (tool_calls.clone(), waiters.clone());
            let schema = tool.parameters.clone().unwrap_or_else(|| json!({"type": "object"}));
            let waiting = raw_tool(&tool.name, &tool.description, schema, move |_, context| {
                let (tool_calls, waiters) = (tool_calls.clone(), waiters.clone());
                async move {
                    let Some(id) = context.tool_use_id().map(str::to_owned) else {
                        return Err("the engine does not say which call this is".to_owned());
                    };
                    let _waiting = waiters.wait();
                    Ok(tool_calls.call(id).await)
                }
            });
            // They change nothing on this side, so several can wait in parallel.
            server.tool(waiting.read_only())
        })
    }
}

/// The model's name for a tool of the client.
fn model_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    format!("mcp__{SERVER}__{plain}")
}

/// The result of the client's tool, for the model. It is a result even if nothing of it is usable.
pub(super) fn output(content: &Content, error: Option<&str>) -> Output {
    if let Some(error) = error {
        return Output::error(error);
    }
    let mut output = Output::new();
    for block in prompt::blocks(content).blocks {
        output = match block {
            ContentBlock::Text(text) => output.block(McpContent::text(text.text)),
            ContentBlock::Image(image) => match image.source {
                Source::Base64(data) => output.image(data.data, data.media_type),
                Source::Url(url) => output.block(McpContent::text(url.url)),
                _ => output,
            },
            ContentBlock::Document(document) => match document.source {
                Source::Text(text) => output.block(McpContent::text(text.data)),
                Source::Url(url) => output.block(McpContent::text(url.url)),
                _ => output,
            },
            _ => output,
        };
    }
    if output.content.is_empty() { output.block(McpContent::text("")) } else { output }
}

/// The answer of a client's tool to a request for approval.
pub(super) fn said(content: &Content) -> Value {
    let text = content.text();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Tool {
        Tool { name: name.into(), description: "d".into(), parameters: None, metadata: None }
    }

    #[test]
    fn tools_are_found_by_their_names_for_the_model() {
        let tools = FrontendTools::new(&[tool("paint it"), tool("paint_it"), tool("Größe")]);
        assert_eq!(tools.names["mcp__ag_ui__paint_it"], "paint it");
        assert_eq!(tools.names["mcp__ag_ui__Gr__e"], "Größe");
        assert_eq!(tools.names.len(), 2, "the first of two counts");
    }

    #[test]
    fn an_unusable_answer_is_still_an_answer() {
        assert_eq!(output(&"done".into(), None), Output::text("done"));
        assert!(output(&"".into(), Some("broke")).is_error);
        let audio = json!([{"type": "audio", "source": {"type": "url", "value": "u"}}]);
        let audio: Content = serde_json::from_value(audio).unwrap();
        assert_eq!(output(&audio, None), Output::text(""));
        let image = json!([{"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}]);
        let image: Content = serde_json::from_value(image).unwrap();
        assert_eq!(output(&image, None), Output::new().image("aGk=", "image/png"));
    }
}
