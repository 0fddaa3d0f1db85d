//! MCP servers that live in this process: tools made of functions.
//!
//! ```
//! use ostler_sdk::Options;
//! use ostler_sdk::mcp::{Server, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! let add = tool("add", "Adds two numbers", |it: Add| it.a + it.b);
//! let options = Options::new().server(Server::new("calc", "1.0.0").tool(add)).allow(["mcp__calc__add"]);
//! ```

use futures::FutureExt as _;
use futures::future::BoxFuture;
pub use ostler_mcp::{
    Content, Context, Json, Output, Prompt, PromptMessage, Resource, Server, Tool, ToolReply,
    ToolValue, raw_tool, tool, tool_with_context,
};
use serde_json::Value;

/// An MCP server that lives in this process. The engine reaches it through the session.
pub trait InProcessServer: Send + Sync + 'static {
    /// Its name: its tools are called `mcp__<name>__<tool>`.
    fn name(&self) -> String;

    /// Begins a conversation with it.
    fn connect(&self) -> Box<dyn ServerConnection>;
}

/// One conversation with an in-process server.
pub trait ServerConnection: Send + Sync + 'static {
    /// Takes a JSON-RPC message; a request is answered, a notification is not. Requests may run side by side.
    fn handle(&self, message: Value) -> BoxFuture<'_, Option<Value>>;

    /// The next thing the server says unasked: progress of a call, or that its tools have changed. `None` when there
    /// is never anything any more.
    fn next_notification(&self) -> BoxFuture<'_, Option<Value>> {
        async { None }.boxed()
    }
}

impl InProcessServer for Server {
    fn name(&self) -> String {
        Self::name(self)
    }

    fn connect(&self) -> Box<dyn ServerConnection> {
        Box::new(Self::connect(self))
    }
}

impl ServerConnection for ostler_mcp::Connection {
    fn handle(&self, message: Value) -> BoxFuture<'_, Option<Value>> {
        Self::handle(self, message).boxed()
    }

    fn next_notification(&self) -> BoxFuture<'_, Option<Value>> {
        Self::next_notification(self).map(Some).boxed()
    }
}
