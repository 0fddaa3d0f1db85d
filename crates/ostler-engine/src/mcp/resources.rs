//! Two tools for the resources of servers. They are offered only while a server has resources.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use futures::FutureExt as _;
use ostler_proto::build;
use ostler_proto::control::ResourceContents;
use ostler_proto::tool::{McpResource, McpResourceContent, ReadMcpResourceOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Servers;
use crate::disk::on_disk;
use crate::scratch::Scratch;
use crate::tool::{AnyTool, Effect, Tool, ToolCx, ToolError, ToolOutput, erase};

/// The most bytes of a resource that the model reads.
const MOST_TEXT: usize = 100_000;

/// How long a subscription may take.
const SUBSCRIPTION: Duration = Duration::from_secs(1);

/// The tools, if any server has resources.
pub(super) fn tools(servers: &Servers) -> Vec<Arc<dyn AnyTool>> {
    let has_some = |(_, server): &(String, Arc<dyn super::Server>)| {
        server.capabilities().get("resources").is_some()
    };
    match servers.connected().iter().any(has_some) {
        true => vec![erase(List(servers.clone())), erase(Read(servers.clone()))],
        false => Vec::new(),
    }
}

struct List(Servers);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Only those of this server.
    #[serde(default)]
    server: Option<String>,
}

impl Tool for List {
    const NAME: &'static str = "ListMcpResourcesTool";
    const DESCRIPTION: &'static str = "Lists the resources that MCP servers offer.";
    type Args = ListArgs;

    fn effect(&self, _: &ToolCx, _: &ListArgs) -> Effect {
        // The user has connected the server; a list changes nothing anywhere.
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, args: ListArgs) -> Result<ToolOutput, ToolError> {
        let wanted = match &args.server {
            Some(name) => vec![(name.clone(), self.0.find(name).map_err(ToolError::Refused)?)],
            None => self.0.connected(),
        };
        let asked = wanted
            .into_iter()
            .map(|(name, server)| server.resources().map(move |found| (name, found)));
        let mut resources: Vec<McpResource> = Vec::new();
        let mut troubles = Vec::new();
        for (name, found) in futures::future::join_all(asked).await {
            match found {
                Ok(found) => resources.extend(
                    found
                        .into_iter()
                        .map(|it| build!(McpResource { server: Some(name.clone()), ..it })),
                ),
                Err(error) => troubles.push(format!("{name}: {error}")),
            }
        }
        if resources.is_empty() && !troubles.is_empty() {
            return Err(ToolError::Failed(troubles.join("\n")));
        }
        let lines = resources.iter().map(|it| {
            let server = it.server.as_deref().unwrap_or_default();
            let what = it.description.as_deref().unwrap_or_default();
            format!("{} ({}) of {server}: {what}", it.uri, it.name)
        });
        let text: Vec<String> = lines.chain(troubles).collect();
        let text = if text.is_empty() {
            "No MCP server offers resources.".to_owned()
        } else {
            text.join("\n")
        };
        Ok(ToolOutput::new(text, resources))
    }
}

struct Read(Servers);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadArgs {
    /// The server.
    server: String,
    /// The resource.
    uri: String,
}

impl Tool for Read {
    const NAME: &'static str = "ReadMcpResourceTool";
    const DESCRIPTION: &'static str = "Reads a resource of an MCP server.";
    type Args = ReadArgs;

    fn effect(&self, _: &ToolCx, _: &ReadArgs) -> Effect {
        // As for the list: reading a resource changes nothing.
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: ReadArgs) -> Result<ToolOutput, ToolError> {
        let server = self.0.find(&args.server).map_err(ToolError::Refused)?;
        let contents = server.read_resource(&args.uri).await.map_err(ToolError::Failed)?;
        // The model learns of later changes; the content does not wait long for that.
        tokio::time::timeout(SUBSCRIPTION, server.subscribe(&args.uri)).await.ok();
        let mut texts = Vec::new();
        let mut parts = Vec::new();
        for content in contents {
            let scratch = cx.scratch.clone();
            let (text, part) = on_disk(move || part(&scratch, content)).await?;
            texts.push(text);
            parts.push(part);
        }
        let output = build!(ReadMcpResourceOutput { contents: parts });
        Ok(ToolOutput::new(texts.join("\n"), output))
    }
}

/// A part of a resource as text for the model and as a value for programs. Bytes, and text that is too long, go into a
/// file.
fn part(
    scratch: &Scratch,
    content: ResourceContents,
) -> Result<(String, McpResourceContent), ToolError> {
    let ResourceContents { uri, mime_type, text, blob, .. } = content;
    let mut part = build!(McpResourceContent { uri, mime_type });
    let read = match (text, blob) {
        (Some(text), _) if text.len() <= MOST_TEXT => {
            part.text = Some(text.clone());
            text
        }
        (Some(text), _) => {
            let path = keep(scratch, text.as_bytes())?;
            let cut: String = text.chars().take(MOST_TEXT / 4).collect();
            part.text = Some(cut.clone());
            part.blob_saved_to = Some(path.clone());
            format!("{cut}\n[cut; all {} bytes are in {path}]", text.len())
        }
        (None, Some(blob)) => {
            let bytes = STANDARD
                .decode(blob)
                .map_err(|error| ToolError::Failed(format!("{}: {error}", part.uri)))?;
            let path = keep(scratch, &bytes)?;
            part.blob_saved_to = Some(path.clone());
            format!("{} bytes, which are in {path}", bytes.len())
        }
        (None, None) => "nothing".to_owned(),
    };
    Ok((read, part))
}

fn keep(scratch: &Scratch, bytes: &[u8]) -> Result<String, ToolError> {
    let failed = |error: std::io::Error| {
        ToolError::Failed(format!("the resource cannot be written to disk: {error}"))
    };
    let path = scratch.keep_new("resource", "", bytes).map_err(failed)?;
    Ok(path.display().to_string())
}
