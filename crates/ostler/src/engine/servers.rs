//! Connects the engine to MCP servers, with `ostler-mcp`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
#[cfg(feature = "mcp-http")]
use ostler_engine::mcp::StartedSignIn;
use ostler_engine::mcp::{
    Connected, Connector, HostLine, McpToolInfo, NotConnected, Server, ServerLocation, ServerPrompt,
};
use ostler_engine::sandbox::SessionSandbox;
use ostler_engine::tool::{RunFuture, ToolCx, ToolError};
use ostler_mcp::{
    CallOptions, Channel, Client, ClientOptions, Endpoint, Event, PromptInfo, Status, ToolInfo,
};
use ostler_proto::api::ContentBlock;
use ostler_proto::build;
use ostler_proto::control::ResourceContents;
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::tool::McpResource;
use ostler_sdk::transport::Environment;
use serde_json::{Value, json};

use super::headers_helper::{self, HeadersHelper, HelperPlace};
use super::server_output::{self, OutputLimit};
use super::{StartContext, server_content};

/// Connects to servers over the network, in child processes, and inside the host.
pub(super) struct ServerConnector {
    /// The timeout of a call if the server's configuration has none. `None` is no timeout.
    call_timeout: Option<Duration>,
    /// The timeout for connecting to a server.
    startup_timeout: Option<Duration>,
    /// How much of a result the model reads.
    limit: OutputLimit,
    /// The environment of servers that are programs.
    env: Environment,
    /// Where commands run that print headers.
    helpers: HelperPlace,
    /// The folder for the tokens of servers that the user signed in to.
    #[cfg(feature = "mcp-http")]
    tokens: Option<std::path::PathBuf>,
    /// The sandbox of servers that are programs.
    sandbox: Option<Arc<dyn SessionSandbox>>,
}

impl ServerConnector {
    /// Reads timeouts and limits from the environment of the session; `env` is the environment of its child processes.
    pub(super) fn of(
        context: &StartContext,
        env: Environment,
        sandbox: Option<Arc<dyn SessionSandbox>>,
        helpers: HelperPlace,
    ) -> Self {
        let ms = |name: &str| context.var(name).and_then(|ms| ms.trim().parse().ok());
        Self {
            call_timeout: ms("MCP_TOOL_TIMEOUT").map(Duration::from_millis),
            startup_timeout: ms("MCP_TIMEOUT").map(Duration::from_millis),
            limit: OutputLimit::of(context),
            env,
            helpers,
            #[cfg(feature = "mcp-http")]
            tokens: super::sign_in::folder(context),
            sandbox,
        }
    }

    /// The endpoint of a configured server; a child process gets the session's environment and sandbox.
    fn endpoint(
        &self,
        config: &McpServerConfig,
        helper: &HeadersHelper,
        host: &HostLine,
    ) -> Result<Endpoint, String> {
        let endpoint = helper.websocket(config).or_else(|| Endpoint::from_config(config));
        let mut endpoint = endpoint.ok_or("this kind of server is not supported")?;
        if let Endpoint::Stdio(program) = &mut endpoint {
            program.env = self.env.with(std::mem::take(&mut program.env.variables));
            if let Some(sandbox) = &self.sandbox {
                let asker = host.host_asker();
                // Which servers run outside.
                let policy = asker.policy();
                let words = std::iter::once(&program.command).chain(&program.args);
                let line = words.map(String::as_str).collect::<Vec<_>>().join(" ");
                let folder = program.cwd.get_or_insert_with(|| policy.cwd.clone());
                if !policy.runs_outside_sandbox(folder, &line) {
                    program.boundary = Some(sandbox.boundary(asker)?);
                }
            }
        }
        Ok(endpoint)
    }
}

impl Connector for ServerConnector {
    fn connect(
        &self,
        name: String,
        place: ServerLocation,
        line: HostLine,
    ) -> BoxFuture<'static, Connected> {
        let (mut timeout, limit) = (self.call_timeout, self.limit);
        let is_stale = Arc::new(AtomicBool::new(false));
        let mut options = self.options(&line, Arc::clone(&is_stale));
        #[cfg(feature = "mcp-http")]
        if let ServerLocation::Configured(config) = &place {
            options = options.oauth(super::sign_in::options(self.tokens.as_deref(), config));
        }
        let endpoint = match &place {
            ServerLocation::Configured(config) => HeadersHelper::of(&self.helpers, &name, config)
                .and_then(|helper| Ok((self.endpoint(config, &helper, &line)?, helper))),
            _ => Err("this kind of server is not supported".to_owned()),
        };
        async move {
            let endpoint = match place {
                ServerLocation::InHost { manifest, timeout: own } => {
                    timeout = own.map(Duration::from_millis).or(timeout);
                    options.manifest = manifest;
                    Endpoint::custom(move || carry(line.clone()))
                }
                ServerLocation::Configured(config) => {
                    timeout = own_timeout(&config).or(timeout);
                    let (endpoint, helper) = endpoint?;
                    helper.add_to(endpoint).await?
                }
                _ => return Err("this kind of server location is not supported".into()),
            };
            let client = Client::new(name, endpoint, options);
            let connected = client.reconnect().await;
            connected.map_err(|error| why(&client, error.to_string()))?;
            let tools = client.list_tools().await;
            let tools = RwLock::new(tools.map_err(|error| why(&client, error.to_string()))?);
            // A server that has no prompts, or fails to list them now, counts as one without prompts.
            let prompts = RwLock::new(prompts(&client).await);
            let (tools, prompts) = (Arc::new(tools), Arc::new(prompts));
            let server = ConnectedServer { client, tools, prompts, timeout, limit, is_stale };
            Ok(Arc::new(server) as Arc<dyn Server>)
        }
        .boxed()
    }

    #[cfg(feature = "mcp-http")]
    fn sign_in(
        &self,
        name: String,
        config: McpServerConfig,
    ) -> BoxFuture<'static, Result<StartedSignIn, String>> {
        super::sign_in::begin(name, config, self.tokens.clone()).boxed()
    }

    #[cfg(feature = "mcp-http")]
    fn sign_out(
        &self,
        name: String,
        config: McpServerConfig,
    ) -> BoxFuture<'static, Result<(), String>> {
        super::sign_in::end(name, config, self.tokens.clone()).boxed()
    }
}

impl ServerConnector {
    /// The options of a client: its timeout, and how it handles requests and events of the server.
    fn options(&self, line: &HostLine, is_stale: Arc<AtomicBool>) -> ClientOptions {
        let line = line.clone();
        let options = ClientOptions::default()
            .on_elicitation(move |question| {
                let line = line.clone();
                async move { line.elicit(question).await }
            })
            .on_event(move |event| {
                if matches!(event, Event::ToolsChanged | Event::PromptsChanged) {
                    is_stale.store(true, Ordering::Relaxed);
                }
            });
        match self.startup_timeout {
            Some(timeout) => options.startup_timeout(timeout),
            None => options,
        }
    }
}

fn why(client: &Client, reason: String) -> NotConnected {
    NotConnected { reason, needs_auth: matches!(client.status(), Status::NeedsAuth(_)) }
}

/// The timeout of calls in a server's configuration.
fn own_timeout(config: &McpServerConfig) -> Option<Duration> {
    let ms = match config {
        McpServerConfig::Stdio(server) => server.timeout.as_ref(),
        config => headers_helper::remote(config).and_then(|server| server.timeout.as_ref()),
    };
    ms.map(|ms| Duration::from_millis(ms.get().max(0.0) as u64))
}

/// A channel to a server inside the host. Each message is a separate request to the host.
fn carry(line: HostLine) -> Channel {
    let (ours, mut theirs) = Channel::pair(64);
    let mut from_server = line.listen();
    // The task ends with the client, which holds the other end of the channel.
    tokio::spawn(async move {
        loop {
            let message = tokio::select! {
                message = theirs.incoming.recv() => message,
                Some(message) = from_server.recv() => {
                    // Fails only if the client is gone.
                    let _ = theirs.outgoing.send(message).await;
                    continue;
                }
            };
            let Some(message) = message else { return };
            let (line, answers) = (line.clone(), theirs.outgoing.clone());
            tokio::spawn(async move {
                let is_request = message.get("method").is_some();
                let id = message.get("id").filter(|_| is_request).cloned();
                let answer = line.send(message).await;
                // Only requests are answered; notifications and our own answers are not.
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

/// The prompts of a server, if it declares that capability.
async fn prompts(client: &Client) -> Vec<PromptInfo> {
    let details = client.details();
    match details.is_some_and(|details| details.capabilities.contains_key("prompts")) {
        true => client.list_prompts().await.unwrap_or_default(),
        false => Vec::new(),
    }
}

struct ConnectedServer {
    client: Client,
    tools: Arc<RwLock<Vec<ToolInfo>>>,
    prompts: Arc<RwLock<Vec<PromptInfo>>>,
    timeout: Option<Duration>,
    limit: OutputLimit,
    /// Whether the server reported a change of its tools or prompts that was not read yet.
    is_stale: Arc<AtomicBool>,
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
        };
        self.tools.read().unwrap_or_else(PoisonError::into_inner).iter().map(of).collect()
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
        let mut options = CallOptions::default()
            .cancellation(cx.cancelled.clone())
            .meta("claudecode/toolUseId", cx.call.as_str());
        if let Some(timeout) = self.timeout {
            options = options.timeout(timeout);
        }
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

    fn refresh(&self) -> BoxFuture<'static, ()> {
        if !self.is_stale.swap(false, Ordering::Relaxed) {
            return async {}.boxed();
        }
        let client = self.client.clone();
        let (tools, known) = (Arc::clone(&self.tools), Arc::clone(&self.prompts));
        async move {
            // If the server fails to list its tools, it keeps those it had.
            if let Ok(now) = client.list_tools().await {
                *tools.write().unwrap_or_else(PoisonError::into_inner) = now;
            }
            let now = prompts(&client).await;
            *known.write().unwrap_or_else(PoisonError::into_inner) = now;
        }
        .boxed()
    }

    fn prompts(&self) -> Vec<ServerPrompt> {
        let of = |prompt: &PromptInfo| ServerPrompt {
            name: prompt.name.clone(),
            description: prompt.description.clone().or(prompt.title.clone()).unwrap_or_default(),
            arguments: prompt.arguments.iter().map(|it| (it.name.clone(), it.required)).collect(),
        };
        self.prompts.read().unwrap_or_else(PoisonError::into_inner).iter().map(of).collect()
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
