//! MCP servers for the engine, reached with `ostler-mcp`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_engine::mcp::{Connected, Connector, HostLine, Place, Server, ServerTool};
use ostler_engine::tool::{RunFuture, ToolCx, ToolError, ToolOutput};
use ostler_mcp::{
    CallOptions, Channel, Client, ClientOptions, Content, Endpoint, Output, Status, ToolInfo,
};
use ostler_proto::api::{Content as Said, ContentBlock};
use ostler_proto::mcp::McpServerConfig;
use serde_json::{Value, json};

use super::{Scene, StartError};

/// The servers that a launch names: JSON as it stands in `.mcp.json`, or the path of such a file.
///
/// # Errors
/// When that cannot be read or understood.
pub(super) fn configured(scene: &Scene) -> Result<BTreeMap<String, McpServerConfig>, StartError> {
    let Some(config) = &scene.launch.mcp_config else { return Ok(BTreeMap::new()) };
    let odd = |reason: String| StartError::Refused(format!("the MCP servers: {reason}"));
    let config = match config {
        Value::String(path) => {
            let text = std::fs::read_to_string(scene.cwd.join(path))
                .map_err(|error| odd(format!("{path} cannot be read: {error}")))?;
            serde_json::from_str(&text).map_err(|error| odd(format!("{path}: {error}")))?
        }
        config => config.clone(),
    };
    let servers = config.get("mcpServers").cloned().unwrap_or(config);
    let servers: BTreeMap<String, Value> =
        serde_json::from_value(servers).map_err(|error| odd(error.to_string()))?;
    let read = |(name, config): (String, Value)| match serde_json::from_value(config) {
        Ok(config) => Ok((name, config)),
        Err(error) => Err(odd(format!("{name}: {error}"))),
    };
    servers.into_iter().map(read).collect()
}

/// Reaches servers over the network, as programs, and inside the host.
pub(super) struct Reach {
    /// How long one call may take; as long as it likes if `None`.
    pub(super) call_timeout: Option<Duration>,
}

impl Connector for Reach {
    fn connect(&self, name: String, place: Place) -> BoxFuture<'static, Connected> {
        let timeout = self.call_timeout;
        async move {
            let endpoint = match place {
                Place::InHost(line) => Endpoint::custom(move || carry(line.clone())),
                Place::Configured(config) => Endpoint::from_config(&config)
                    .ok_or_else(|| "this kind of server is not supported".to_owned())?,
                _ => return Err("this kind of place is not supported".to_owned()),
            };
            let connected = Client::connect(name, endpoint, ClientOptions::default()).await;
            let client = connected.map_err(|error| error.to_string())?;
            let tools = client.list_tools().await.map_err(|error| error.to_string())?;
            Ok(Arc::new(Reached { client, tools, timeout }) as Arc<dyn Server>)
        }
        .boxed()
    }
}

/// Carries messages to a server inside the host, each as a request of its own.
fn carry(line: HostLine) -> Channel {
    let (ours, mut theirs) = Channel::pair(64);
    // Ends with the client, which holds the other end.
    tokio::spawn(async move {
        while let Some(message) = theirs.incoming.recv().await {
            let (line, answers) = (line.clone(), theirs.outgoing.clone());
            tokio::spawn(async move {
                let id = message.get("id").cloned();
                let answer = line.send(message).await;
                // The answer to a notification means nothing.
                let Some(id) = id else { return };
                let answer = answer.unwrap_or_else(|error| {
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": error}})
                });
                let _ = answers.send(answer).await;
            });
        }
    });
    ours
}

struct Reached {
    client: Client,
    tools: Vec<ToolInfo>,
    timeout: Option<Duration>,
}

impl Server for Reached {
    fn info(&self) -> (String, String) {
        let details = self.client.details();
        details.map(|details| (details.name, details.version)).unwrap_or_default()
    }

    fn tools(&self) -> Vec<ServerTool> {
        let of = |tool: &ToolInfo| ServerTool {
            name: tool.name.clone(),
            description: tool.description.clone().unwrap_or_default(),
            input_schema: Value::Object(tool.input_schema.clone()),
            read_only: tool.annotations.as_ref().and_then(|hints| hints.read_only) == Some(true),
            annotations: tool.annotations.as_ref().map(|hints| json!(hints)),
        };
        self.tools.iter().map(of).collect()
    }

    fn lost(&self) -> Option<String> {
        match self.client.status() {
            Status::Connected => None,
            Status::Pending => Some("it connects".to_owned()),
            Status::NeedsAuth(reason) | Status::Failed(reason) => Some(reason),
            _ => Some("it is not connected".to_owned()),
        }
    }

    fn call(&self, tool: &str, input: Value, cx: &ToolCx) -> RunFuture {
        let mut options = CallOptions::default()
            .cancellation(cx.cancelled.clone())
            .meta("claudecode/toolUseId", cx.call.as_str());
        if let Some(timeout) = self.timeout {
            options = options.timeout(timeout);
        }
        let (client, tool) = (self.client.clone(), tool.to_owned());
        async move {
            let output = client.call_tool(&tool, input, options).await;
            let output = output.map_err(|error| ToolError::Failed(error.to_string()))?;
            if output.is_error {
                return Err(ToolError::Failed(output.joined_text()));
            }
            Ok(told(output))
        }
        .boxed()
    }
}

/// What the model reads, and what programs read.
fn told(output: Output) -> ToolOutput {
    let content = json!(output.content.iter().map(Content::to_value).collect::<Vec<_>>());
    match output.structured {
        Some(structured) => ToolOutput {
            content: Said::Text(structured.to_string()),
            structured: Some(json!({"content": content, "structuredContent": structured})),
        },
        None => {
            let blocks = output.content.iter().map(block).collect();
            ToolOutput { content: Said::Blocks(blocks), structured: Some(content) }
        }
    }
}

/// A block that the API takes; what it does not take is told in words.
fn block(content: &Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text.as_str()),
        Content::Image(image) => {
            let value = json!({"type": "image", "source": {
                "type": "base64", "media_type": image.mime_type, "data": image.data,
            }});
            let said = "[a picture that cannot be shown]";
            serde_json::from_value(value).unwrap_or_else(|_| ContentBlock::text(said))
        }
        other => ContentBlock::text(other.to_value().to_string()),
    }
}
