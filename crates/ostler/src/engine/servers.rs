//! Connects the engine to MCP servers, with `ostler-mcp`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
#[cfg(feature = "mcp-http")]
use ostler_engine::mcp::StartedSignIn;
use ostler_engine::mcp::{
    Connected, Connector, HostLine, NotConnected, Retry, Server, ServerLocation,
};
use ostler_engine::sandbox::SessionSandbox;
use ostler_mcp::{Channel, Client, ClientOptions, Endpoint, Error, Root};
use ostler_proto::mcp::McpServerConfig;
use ostler_sdk::transport::Environment;
use serde_json::json;

use super::StartContext;
use super::connected_server::{CallTimeout, ConnectedServer, prompts};
use super::headers_helper::{self, HeadersHelper, HelperPlace};
use super::sandbox::SandboxPlan;
use super::server_events::ServerEvents;
use super::server_output::OutputLimit;
use super::server_pool::ServerHosting;
use super::shared_server::{self, SharedProgram};

/// The least important log messages that servers are asked to send.
const LOG_LEVEL: &str = "info";
/// How long a server may take to answer a request that nothing depends on.
const BRIEF: Duration = Duration::from_secs(2);

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
    tokens: Option<PathBuf>,
    /// The sandbox of servers that are programs.
    sandbox: Option<Arc<dyn SessionSandbox>>,
    /// The same sandbox for programs that sessions share.
    plan: Option<SandboxPlan>,
    /// The working directory at the start of the session.
    cwd: PathBuf,
    /// What the host's sessions share.
    hosting: Option<ServerHosting>,
    /// Whether a user, a host or a hook can answer questions of servers.
    answers_questions: bool,
    retry: Retry,
}

impl ServerConnector {
    /// Reads timeouts and limits from the environment of the session; `env` is the environment of its child processes.
    pub(super) fn of(
        context: &StartContext,
        env: Environment,
        (sandbox, plan): (Option<Arc<dyn SessionSandbox>>, Option<SandboxPlan>),
        helpers: HelperPlace,
        answers_questions: bool,
    ) -> Self {
        let ms = |name: &str| context.var(name).and_then(|ms| ms.trim().parse().ok());
        Self {
            call_timeout: ms("MCP_TOOL_TIMEOUT").map(Duration::from_millis),
            startup_timeout: ms("MCP_TIMEOUT").map(Duration::from_millis),
            limit: OutputLimit::of(context),
            env,
            helpers,
            #[cfg(feature = "mcp-http")]
            tokens: match &context.hosting {
                Some(hosting) => Some(hosting.tokens.clone()),
                None => super::sign_in::folder(context),
            },
            sandbox,
            plan,
            cwd: context.cwd.clone(),
            hosting: context.hosting.clone(),
            answers_questions,
            retry: match ms("OSTLER_MCP_RETRY_MS").map(Duration::from_millis) {
                Some(first) => Retry { first, ..Retry::default() },
                None => Retry::default(),
            },
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
            let must_be_confined = shared_server::must_be_confined(config);
            program.env = self.env.with(std::mem::take(&mut program.env.variables));
            // Not that of this process, which may have sessions in many folders.
            let folder = program.cwd.get_or_insert_with(|| host.folder());
            if let Some(sandbox) = &self.sandbox {
                let asker = host.host_asker();
                // Which servers run outside.
                let policy = asker.policy();
                let words = std::iter::once(&program.command).chain(&program.args);
                let line = words.map(String::as_str).collect::<Vec<_>>().join(" ");
                if must_be_confined || !policy.runs_outside_sandbox(folder, &line) {
                    program.boundary = Some(sandbox.boundary(asker)?);
                }
            }
            if must_be_confined && program.boundary.is_none() {
                return Err(shared_server::NO_SANDBOX.to_owned());
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
        let mut timeout = CallTimeout { after: self.call_timeout, is_fixed: false };
        if let (ServerLocation::Configured(config), Some(hosting)) = (&place, &self.hosting)
            && shared_server::is_shared(config)
        {
            timeout = fixed(own_timeout(config)).unwrap_or(timeout);
            return self.connect_shared(name, config, hosting.clone(), timeout);
        }
        let (limit, events) = (self.limit, Arc::new(ServerEvents::default()));
        let mut options = self.options(&line, &events);
        #[cfg(feature = "mcp-http")]
        if let ServerLocation::Configured(config) = &place {
            options = options.oauth(super::sign_in::options(self.tokens.as_deref(), config));
        }
        let endpoint = match &place {
            ServerLocation::Configured(config) => HeadersHelper::of(&self.helpers, &name, config)
                .and_then(|helper| Ok((self.endpoint(config, &helper, &line)?, helper))),
            _ => Err("this kind of server is not supported".to_owned()),
        };
        let hosting = self.hosting.clone();
        async move {
            let endpoint = match place {
                ServerLocation::InHost { manifest, timeout: own } => {
                    timeout = fixed(own.map(Duration::from_millis)).unwrap_or(timeout);
                    options.manifest = manifest;
                    Endpoint::custom(move || carry(line.clone()))
                }
                ServerLocation::Configured(config) => {
                    timeout = fixed(own_timeout(&config)).unwrap_or(timeout);
                    let (endpoint, helper) = endpoint?;
                    if helper.is_there() {
                        let again = helper.clone();
                        options = options.renew_headers(move || {
                            let again = again.clone();
                            async move { again.headers().await }
                        });
                    }
                    helper.add_to(endpoint).await?
                }
                _ => return Err("this kind of server location is not supported".into()),
            };
            let is_remote = matches!(endpoint, Endpoint::Http(_) | Endpoint::Sse(_));
            let is_program = matches!(endpoint, Endpoint::Stdio(_));
            let hosting = hosting.filter(|_| is_program);
            let counted = match hosting {
                Some(hosting) => Some(hosting.pool.count(&hosting.user).await?),
                None => None,
            };
            let client = Client::new(name, endpoint, options);
            client.reconnect().await.map_err(|error| why(&error, is_remote))?;
            let tools = client.list_tools().await.map_err(|error| why(&error, is_remote))?;
            // A server that has no prompts, or fails to list them now, counts as one without prompts.
            let prompts = prompts(&client).await;
            if client.details().is_some_and(|it| it.capabilities.contains_key("logging")) {
                tokio::time::timeout(BRIEF, client.set_log_level(LOG_LEVEL)).await.ok();
            }
            let server = ConnectedServer::new(client, (tools, prompts), timeout, limit, events);
            Ok(Arc::new(server.with_guard(counted)) as Arc<dyn Server>)
        }
        .boxed()
    }

    fn retry(&self) -> Retry {
        self.retry
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
    /// Connects to a program that other sessions use too, which is started if this is the first.
    fn connect_shared(
        &self,
        name: String,
        config: &McpServerConfig,
        hosting: ServerHosting,
        timeout: CallTimeout,
    ) -> BoxFuture<'static, Connected> {
        let McpServerConfig::Stdio(server) = config else {
            return std::future::ready(Err("only programs can be shared".into())).boxed();
        };
        let place = (&self.env, self.cwd.as_path());
        let program = SharedProgram::of((&name, server), &hosting, place, self.plan.clone());
        let program = match program {
            Ok(program) => program,
            Err(reason) => return std::future::ready(Err(reason.into())).boxed(),
        };
        let options = ClientOptions::default();
        let options = match self.startup_timeout {
            Some(timeout) => options.startup_timeout(timeout),
            None => options,
        };
        let (limit, events) = (self.limit, Arc::new(ServerEvents::default()));
        async move {
            let ServerHosting { pool, user, .. } = hosting;
            let lease = pool.lease(&user, &program.key);
            let endpoint = move || program.endpoint();
            let running = lease.connect(&name, &user, options, &events, endpoint).await?;
            let server = ConnectedServer::shared(running, lease, timeout, limit, events);
            Ok(Arc::new(server) as Arc<dyn Server>)
        }
        .boxed()
    }

    /// The options of a client: its timeout, and how it handles requests and events of the server.
    fn options(&self, line: &HostLine, events: &Arc<ServerEvents>) -> ClientOptions {
        let (questions, folders, events) = (line.clone(), line.clone(), Arc::clone(events));
        let mut options = ClientOptions::default()
            .roots(move || folders.folders().iter().map(|folder| Root::folder(folder)).collect())
            .on_event(move |event| events.note(event));
        // A question that no user can answer is better not asked.
        if self.answers_questions {
            let asking = line.clone();
            options = options.on_elicitation(move |question| {
                let line = questions.clone();
                async move { line.elicit(question).await }
            });
            options = options.on_sampling(move |params| {
                let line = asking.clone();
                async move { line.sample(params).await }
            });
        }
        match self.startup_timeout {
            Some(timeout) => options.startup_timeout(timeout),
            None => options,
        }
    }
}

/// A server behind a URL that is not there may be there later. A program that does not start is not there.
fn why(error: &Error, is_remote: bool) -> NotConnected {
    NotConnected {
        reason: error.to_string(),
        needs_auth: error.needs_auth(),
        may_recover: is_remote && matches!(error, Error::Unreachable { .. } | Error::Closed { .. }),
    }
}

fn fixed(after: Option<Duration>) -> Option<CallTimeout> {
    after.map(|after| CallTimeout { after: Some(after), is_fixed: true })
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
