//! MCP servers inside this process: tools made of functions.
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
    AskError, ClientCapability, Content, Context, Elicited, Json, Level, Output, Prompt,
    PromptMessage, Resource, Server, Tool, ToolReply, ToolValue, raw_tool, tool, tool_with_context,
};
use serde_json::Value;

/// An MCP server inside this process. The engine reaches it through the session.
pub trait InProcessServer: Send + Sync + 'static {
    /// The server's name. Its tools are named `mcp__<name>__<tool>`.
    fn name(&self) -> String;

    /// Opens a connection.
    fn connect(&self) -> Box<dyn ServerConnection>;
}

/// A connection to an in-process server.
pub trait ServerConnection: Send + Sync + 'static {
    /// Handles a JSON-RPC message. Returns the answer to a request, `None` for a notification. Requests may run in
    /// parallel.
    fn handle(&self, message: Value) -> BoxFuture<'_, Option<Value>>;

    /// The next notification of the server, such as the progress of a call or a change of its tools. `None` when no
    /// more notifications follow.
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
