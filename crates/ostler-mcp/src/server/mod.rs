//! In-process servers: tools, resources and prompts that are functions of this program.
//!
//! A [`Server`] is a value; a [`Connection`] is one client's session with it. `answers.rs` answers each method,
//! `connection.rs` tracks running requests.

mod answers;
mod connection;
mod context;
mod lines;
mod prompt;
mod reply;
mod resource;
mod schema;
mod template;
mod tool;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

#[cfg(feature = "client")]
pub(crate) use self::answers::VERSIONS;
pub use self::connection::Connection;
pub use self::context::Context;
use self::context::Extensions;
pub use self::prompt::{Prompt, PromptArguments, PromptMessage};
pub use self::reply::{Async, Fallible, Json, Plain, ToolReply, ToolValue};
pub use self::resource::{Resource, Variables};
pub use self::tool::{Tool, raw_tool, tool, tool_with_context};
use crate::rpc;

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
    /// Where each connection's client is notified of changes.
    listeners: Mutex<Vec<mpsc::Sender<Value>>>,
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
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Map::from_iter([
            ("name".to_owned(), name.into().into()),
            ("version".to_owned(), version.into().into()),
        ]);
        let (instructions, tools, resources, prompts, extensions) = Default::default();
        let catalog = Catalog { info, instructions, tools, resources, prompts, extensions };
        let catalog = RwLock::new(catalog);
        Self { inner: Arc::new(Inner { catalog, listeners: Mutex::default() }) }
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
        self.announce("notifications/tools/list_changed");
    }

    /// Removes a tool, and notifies the clients. Returns whether it existed. Running calls continue.
    pub fn remove_tool(&self, name: &str) -> bool {
        let removed = self.change(|catalog| {
            let before = catalog.tools.len();
            catalog.tools.retain(|tool| tool.name() != name);
            catalog.tools.len() < before
        });
        if removed {
            self.announce("notifications/tools/list_changed");
        }
        removed
    }

    /// Adds a resource to a server in use, and notifies its clients.
    pub fn add_resource(&self, resource: Resource) {
        self.change(|catalog| {
            put(&mut catalog.resources, resource, |resource| resource.pattern().to_owned());
        });
        self.announce("notifications/resources/list_changed");
    }

    /// Adds a prompt to a server in use, and notifies its clients.
    pub fn add_prompt(&self, prompt: Prompt) {
        self.change(|catalog| put(&mut catalog.prompts, prompt, |prompt| prompt.name().to_owned()));
        self.announce("notifications/prompts/list_changed");
    }

    /// A session for a client that carries the messages itself.
    pub fn connect(&self) -> Connection {
        let (connection, listener) = Connection::new(self.clone());
        self.listeners(|listeners| {
            listeners.retain(|listener| !listener.is_closed());
            listeners.push(listener);
        });
        connection
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
        look(&self.inner.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Catalog) -> T) -> T {
        change(&mut self.inner.catalog.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn listeners<T>(&self, change: impl FnOnce(&mut Vec<mpsc::Sender<Value>>) -> T) -> T {
        change(&mut self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notifies every client. A client whose queue is full misses it, but has the same notification to read already.
    fn announce(&self, method: &str) {
        self.listeners(|listeners| {
            listeners.retain(|listener| !listener.is_closed());
            for listener in listeners {
                listener.try_send(rpc::notification(method, None)).ok();
            }
        });
    }
}

fn put<T>(items: &mut Vec<T>, item: T, key: impl Fn(&T) -> String) {
    match items.iter_mut().find(|there| key(there) == key(&item)) {
        Some(there) => *there = item,
        None => items.push(item),
    }
}
