//! A connected MCP server as the engine uses it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_engine::mcp::{McpToolInfo, Server, ServerPrompt};
use ostler_engine::tool::{CallProgress, RunFuture, ToolCx, ToolError};
use ostler_mcp::{CallOptions, Client, Progress, PromptInfo, Status, ToolInfo};
use ostler_proto::api::ContentBlock;
use ostler_proto::build;
use ostler_proto::control::ResourceContents;
use ostler_proto::tool::McpResource;
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::server_content;
use super::server_events::ServerEvents;
use super::server_output::{self, OutputLimit};
use super::server_pool::{Lease, Running};

/// How many times its timeout a call may take if the server reports progress.
const MOST_EXTENSION: u32 = 10;

/// The timeout of calls.
#[derive(Clone, Copy, Default)]
pub(super) struct CallTimeout {
    /// `None` for calls without a timeout.
    pub(super) after: Option<Duration>,
    /// Whether progress extends it. It does not extend one that the server's configuration names.
    pub(super) is_fixed: bool,
}

pub(super) struct ConnectedServer {
    client: Client,
    tools: Arc<RwLock<Vec<ToolInfo>>>,
    prompts: Arc<RwLock<Vec<PromptInfo>>>,
    timeout: CallTimeout,
    limit: OutputLimit,
    events: Arc<ServerEvents>,
    /// Whether other sessions use the same connection.
    is_shared: bool,
    /// Dropped after the client: the use of a shared program, or the count of an own one.
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl ConnectedServer {
    pub(super) fn new(
        client: Client,
        (tools, prompts): (Vec<ToolInfo>, Vec<PromptInfo>),
        timeout: CallTimeout,
        limit: OutputLimit,
        events: Arc<ServerEvents>,
    ) -> Self {
        let (tools, prompts) = (Arc::new(RwLock::new(tools)), Arc::new(RwLock::new(prompts)));
        Self { client, tools, prompts, timeout, limit, events, is_shared: false, _guard: None }
    }

    /// A program that other sessions use too.
    pub(super) fn shared(
        running: Running,
        lease: Lease,
        timeout: CallTimeout,
        limit: OutputLimit,
        events: Arc<ServerEvents>,
    ) -> Self {
        let Running { client, tools, prompts, .. } = running.clone();
        let guard = (running, lease);
        let (is_shared, guard) = (true, Some(Box::new(guard) as _));
        Self { client, tools, prompts, timeout, limit, events, is_shared, _guard: guard }
    }

    /// Keeps something until the server is dropped.
    pub(super) fn with_guard(self, guard: impl Any + Send + Sync) -> Self {
        Self { _guard: Some(Box::new(guard)), ..self }
    }

    fn call_options(&self, cx: &ToolCx) -> CallOptions {
        let progress = cx.progress.clone();
        let mut options = CallOptions::default()
            .cancellation(cx.cancelled.clone())
            .meta("claudecode/toolUseId", cx.call.as_str())
            .on_progress(move |Progress { done, total, message, .. }| {
                progress.report(CallProgress { done, total, message });
            });
        if let Some(timeout) = self.timeout.after {
            options = options.timeout(timeout);
            if !self.timeout.is_fixed {
                options = options.extended_by_progress(timeout.saturating_mul(MOST_EXTENSION));
            }
        }
        options
    }
}

/// The prompts of a server, if it declares that capability.
pub(super) async fn prompts(client: &Client) -> Vec<PromptInfo> {
    let details = client.details();
    match details.is_some_and(|details| details.capabilities.contains_key("prompts")) {
        true => client.list_prompts().await.unwrap_or_default(),
        false => Vec::new(),
    }
}

impl Server for ConnectedServer {
    fn info(&self) -> (String, String) {
        let details = self.client.details();
        details.map(|details| (details.name, details.version)).unwrap_or_default()
    }

    fn tools(&self) -> Vec<McpToolInfo> {
        let of = |tool: &ToolInfo| McpToolInfo {
            name: tool.name.clone(),
            description: tool.description.clone().unwrap_or_default(),
            input_schema: Value::Object(tool.input_schema.clone()),
            read_only: tool.annotations.as_ref().and_then(|hints| hints.read_only) == Some(true),
            annotations: tool.annotations.as_ref().map(|hints| json!(hints)),
            meta: tool.meta.clone(),
        };
        self.tools.read().iter().map(of).collect()
    }

    fn lost(&self) -> Option<String> {
        match self.client.status() {
            Status::Connected => None,
            Status::Pending => Some("it is still connecting".to_owned()),
            Status::NeedsAuth(reason) | Status::Failed(reason) => Some(reason),
            _ => Some("it is not connected".to_owned()),
        }
    }

    fn needs_auth(&self) -> bool {
        matches!(self.client.status(), Status::NeedsAuth(_))
    }

    fn call(&self, tool: &str, input: Value, cx: &ToolCx) -> RunFuture {
        let options = self.call_options(cx);
        let (client, tool) = (self.client.clone(), tool.to_owned());
        let (limit, scratch) = (self.limit, cx.scratch.clone());
        async move {
            let output = client.call_tool(&tool, input, options).await;
            let output = output.map_err(|error| ToolError::Failed(error.to_string()))?;
            if output.is_error {
                let text = limit.cut(output.joined_text(), &scratch);
                // The API refuses an error without a text.
                let is_blank = text.trim().is_empty();
                let text =
                    if is_blank { format!("{tool} failed and gave no reason") } else { text };
                return Err(ToolError::Failed(text));
            }
            let fit = move || server_output::tool_output(output, limit, &scratch);
            let fitted = tokio::task::spawn_blocking(fit).await;
            fitted.map_err(|error| ToolError::Failed(format!("reading the result failed: {error}")))
        }
        .boxed()
    }

    fn ended(&self) -> BoxFuture<'static, ()> {
        self.events.ended()
    }

    fn instructions(&self) -> Option<String> {
        self.client.details()?.instructions
    }

    fn log(&self) -> Vec<Value> {
        self.events.log()
    }

    fn folders_changed(&self) {
        // A shared server knows no folders of sessions.
        if !self.is_shared {
            self.client.roots_changed();
        }
    }

    fn is_stale(&self) -> bool {
        self.events.is_stale()
    }

    fn subscribe(&self, uri: &str) -> BoxFuture<'static, ()> {
        let can = self.capabilities()["resources"]["subscribe"] == true;
        if !can || !self.events.note_subscription(uri) {
            return async {}.boxed();
        }
        let (client, uri) = (self.client.clone(), uri.to_owned());
        // Without the subscription the model does not learn of changes; nothing else depends on it.
        async move { _ = client.subscribe(&uri).await }.boxed()
    }

    fn changed_resources(&self) -> Vec<String> {
        self.events.take_changed_resources()
    }

    fn refresh(&self) -> BoxFuture<'static, ()> {
        if !self.events.take_stale() {
            return async {}.boxed();
        }
        let client = self.client.clone();
        let (tools, known) = (Arc::clone(&self.tools), Arc::clone(&self.prompts));
        async move {
            // If the server fails to list its tools, it keeps those it had.
            if let Ok(now) = client.list_tools().await {
                *tools.write() = now;
            }
            let now = prompts(&client).await;
            *known.write() = now;
        }
        .boxed()
    }

    fn prompts(&self) -> Vec<ServerPrompt> {
        let of = |prompt: &PromptInfo| ServerPrompt {
            name: prompt.name.clone(),
            description: prompt.description.clone().or(prompt.title.clone()).unwrap_or_default(),
            arguments: prompt.arguments.iter().map(|it| (it.name.clone(), it.required)).collect(),
        };
        self.prompts.read().iter().map(of).collect()
    }

    fn prompt(
        &self,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<Vec<ContentBlock>, String>> {
        let (client, name) = (self.client.clone(), name.to_owned());
        async move {
            let prompt = client.get_prompt(&name, arguments).await;
            let prompt = prompt.map_err(|error| error.to_string())?;
            let messages = prompt.messages.iter();
            Ok(messages.flat_map(|it| server_content::blocks(&it.content, None)).collect())
        }
        .boxed()
    }

    fn capabilities(&self) -> Value {
        self.client.details().map(|details| Value::Object(details.capabilities)).unwrap_or_default()
    }

    fn resources(&self) -> BoxFuture<'static, Result<Vec<McpResource>, String>> {
        let client = self.client.clone();
        async move {
            let links = client.list_resources().await.map_err(|error| error.to_string())?;
            let of = |link: ostler_mcp::ResourceLink| {
                build!(McpResource {
                    uri: link.uri,
                    name: link.name,
                    mime_type: link.mime_type,
                    description: link.description,
                    server: None,
                })
            };
            Ok(links.into_iter().map(of).collect())
        }
        .boxed()
    }

    fn read_resource(
        &self,
        uri: &str,
    ) -> BoxFuture<'static, Result<Vec<ResourceContents>, String>> {
        let (client, uri) = (self.client.clone(), uri.to_owned());
        async move {
            let read = client.read_resource(&uri).await.map_err(|error| error.to_string())?;
            let of = |it: ostler_mcp::ResourceContents| {
                build!(ResourceContents {
                    uri: it.uri,
                    mime_type: it.mime_type,
                    text: it.text,
                    blob: it.blob,
                    meta: it.meta,
                })
            };
            Ok(read.into_iter().map(of).collect())
        }
        .boxed()
    }
}
