//! In-process servers: tools, resources and prompts that are functions of this program.
//!
//! A [`Server`] is a value; a [`Connection`] is one client's session with it. `answers.rs` answers each method,
//! `connection.rs` tracks running requests, `client.rs` has what a request says about its client. Questions to the client
//! are in `ask.rs`.

mod answers;
mod ask;
mod client;
mod completion;
mod connection;
mod context;
#[cfg(feature = "serve-http")]
mod http;
mod level;
mod lines;
mod listeners;
mod prompt;
mod questions;
mod refusal;
mod reply;
mod resource;
mod rounds;
mod schema;
mod template;
mod tool;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
use serde_json::{Map, Value, json};

#[cfg(any(feature = "client", feature = "serve-http"))]
pub(crate) use self::answers::VERSIONS;
pub use self::ask::{AskError, ClientCapability, Elicited};
pub use self::connection::Connection;
pub use self::context::Context;
use self::context::Extensions;
#[cfg(feature = "serve-http")]
pub use self::http::HttpOptions;
pub use self::level::Level;
use self::listeners::{Change, Listeners};
pub use self::prompt::{Prompt, PromptArguments, PromptMessage};
pub use self::reply::{Async, Fallible, Json, Plain, ToolReply, ToolValue};
pub use self::resource::{Resource, Variables};
use self::rounds::Signer;
pub use self::tool::{Tool, raw_tool, tool, tool_with_context};

/// An MCP server inside this program. Cheap to clone; clones are the same server.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use ostler_mcp::{Server, tool};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: i64,
///     b: i64,
/// }
///
/// let server = Server::new("calc", "1.0.0").tool(tool("add", "Adds two numbers", |args: Add| async move {
///     args.a.checked_add(args.b).ok_or("the sum is too large")
/// }));
///
/// let call = json!({
///     "jsonrpc": "2.0", "id": 1, "method": "tools/call",
///     "params": {"name": "add", "arguments": {"a": 2, "b": 3}},
/// });
/// let answer = server.connect().handle(call).await.unwrap();
/// assert_eq!(answer["result"]["content"][0]["text"], "5");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    catalog: RwLock<Catalog>,
    /// Who is notified of changes.
    listeners: Listeners,
    /// Made when the first client without a session is asked something.
    signer: OnceLock<Signer>,
}

/// Everything that a server offers.
#[derive(Clone, Debug)]
struct Catalog {
    info: Map<String, Value>,
    instructions: Option<String>,
    tools: Vec<Tool>,
    resources: Vec<Resource>,
    prompts: Vec<Prompt>,
    extensions: Extensions,
    /// Whether its tools send log messages.
    logs: bool,
    /// How long clients may keep lists and resources, and whether they may share them among users.
    cache: (Duration, bool),
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Map::from_iter([
            ("name".to_owned(), name.into().into()),
            ("version".to_owned(), version.into().into()),
        ]);
        let (instructions, tools, resources, prompts, extensions) = Default::default();
        let (logs, cache) = Default::default();
        let catalog =
            Catalog { info, instructions, tools, resources, prompts, extensions, logs, cache };
        let (catalog, signer) = (RwLock::new(catalog), OnceLock::new());
        Self { inner: Arc::new(Inner { catalog, listeners: Listeners::default(), signer }) }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.catalog(|catalog| catalog.info["name"].as_str().unwrap_or_default().to_owned())
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.change(|catalog| catalog.info.insert("title".to_owned(), title.into().into()));
        self
    }

    /// Sets instructions about the server for the model.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.change(|catalog| catalog.instructions = Some(instructions.into()));
        self
    }

    /// Declares that its tools send log messages ([`Context::log`]). Without this none are sent.
    #[must_use]
    pub fn logging(self) -> Self {
        self.change(|catalog| catalog.logs = true);
        self
    }

    /// How long clients may use lists and resources without asking again, and whether they may share them among their
    /// users. Only clients of MCP 2026-07-28 are told. By default they may not use them again at all.
    #[must_use]
    pub fn cache(self, lifetime: Duration, is_shared: bool) -> Self {
        self.change(|catalog| catalog.cache = (lifetime, is_shared));
        self
    }

    /// Gives a value to its tools, which find it by its type: [`Context::extension`]. A tool can thus be written once
    /// and used on several servers. Replaces a value of the same type.
    ///
    /// ```
    /// use ostler_mcp::{Context, Server, tool_with_context};
    ///
    /// struct Tenant(&'static str);
    ///
    /// let whoami = tool_with_context("whoami", "Names the tenant", |(): (), context: Context| {
    ///     context.extension::<Tenant>().map_or("unknown", |tenant| tenant.0)
    /// });
    /// let server = Server::new("first", "1.0.0").tool(whoami.clone()).extension(Tenant("first"));
    /// let other = Server::new("second", "1.0.0").tool(whoami).extension(Tenant("second"));
    /// ```
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.change(|catalog| catalog.extensions.insert(value));
        self
    }

    /// Adds a tool; replaces one with the same name. One [without a handler](Tool::without_handler) is left out.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.add_tool(tool);
        self
    }

    /// Adds tools.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().for_each(|tool| self.add_tool(tool));
        self
    }

    /// Adds a resource or a template; replaces one with the same address.
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.add_resource(resource);
        self
    }

    /// Adds a prompt; replaces one with the same name.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.add_prompt(prompt);
        self
    }

    /// Adds a tool to a server in use, and notifies its clients.
    pub fn add_tool(&self, tool: Tool) {
        if !tool.has_handler() {
            return;
        }
        self.change(|catalog| put(&mut catalog.tools, tool, |tool| tool.name().to_owned()));
        self.listeners().announce(Change::Tools);
    }

    /// Removes a tool, and notifies the clients. Returns whether it existed. Running calls continue.
    pub fn remove_tool(&self, name: &str) -> bool {
        let removed = self.change(|catalog| {
            let before = catalog.tools.len();
            catalog.tools.retain(|tool| tool.name() != name);
            catalog.tools.len() < before
        });
        if removed {
            self.listeners().announce(Change::Tools);
        }
        removed
    }

    /// Adds a resource to a server in use, and notifies its clients.
    pub fn add_resource(&self, resource: Resource) {
        self.change(|catalog| {
            put(&mut catalog.resources, resource, |resource| resource.pattern().to_owned());
        });
        self.listeners().announce(Change::Resources);
    }

    /// Adds a prompt to a server in use, and notifies its clients.
    pub fn add_prompt(&self, prompt: Prompt) {
        self.change(|catalog| put(&mut catalog.prompts, prompt, |prompt| prompt.name().to_owned()));
        self.listeners().announce(Change::Prompts);
    }

    /// Removes a prompt, and notifies the clients. Returns whether it existed.
    pub fn remove_prompt(&self, name: &str) -> bool {
        let removed = self.change(|catalog| {
            let before = catalog.prompts.len();
            catalog.prompts.retain(|prompt| prompt.name() != name);
            catalog.prompts.len() < before
        });
        if removed {
            self.listeners().announce(Change::Prompts);
        }
        removed
    }

    /// Notifies the clients that watch a resource that its contents have changed.
    pub fn resource_updated(&self, uri: &str) {
        self.listeners().announce(Change::Resource(uri));
    }

    /// A session for a client that carries the messages itself.
    pub fn connect(&self) -> Connection {
        Connection::new(self.clone())
    }

    /// The handshake's answers to `initialize` and `tools/list`. An engine that receives them in advance
    /// (`sdkMcpServerManifests`) skips the handshake.
    ///
    /// ```
    /// let manifest = ostler_mcp::Server::new("calc", "1.0.0").manifest();
    /// assert_eq!(manifest["initializeResult"]["serverInfo"]["name"], "calc");
    /// assert_eq!(manifest["toolsListResult"], serde_json::json!({"tools": []}));
    /// ```
    pub fn manifest(&self) -> Value {
        self.catalog(|catalog| {
            json!({
                "initializeResult": answers::initialize(catalog, &Value::Null),
                "toolsListResult": answers::list_tools(catalog),
            })
        })
    }

    /// Serves one client over this process's standard input and output, until the input ends.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub async fn serve_stdio(&self) -> std::io::Result<()> {
        self.serve(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Serves one client over a pair of byte streams, one message per line, until the input ends.
    ///
    /// # Errors
    /// If one of the streams fails.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> std::io::Result<()>
    where
        R: tokio::io::AsyncRead + Unpin,
        W: tokio::io::AsyncWrite + Unpin,
    {
        lines::serve(self.connect(), reader, writer).await
    }

    fn catalog<T>(&self, look: impl FnOnce(&Catalog) -> T) -> T {
        look(&self.inner.catalog.read())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Catalog) -> T) -> T {
        change(&mut self.inner.catalog.write())
    }

    fn listeners(&self) -> &Listeners {
        &self.inner.listeners
    }

    fn signer(&self) -> &Signer {
        self.inner.signer.get_or_init(Signer::new)
    }
}

fn put<T>(items: &mut Vec<T>, item: T, key: impl Fn(&T) -> String) {
    match items.iter_mut().find(|there| key(there) == key(&item)) {
        Some(there) => *there = item,
        None => items.push(item),
    }
}
