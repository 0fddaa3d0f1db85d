//! MCP servers that live in this process.

use futures::future::BoxFuture;
use serde_json::Value;

/// An MCP server that lives in this process. The engine reaches it through the session.
pub trait InProcessServer: Send + Sync + 'static {
    /// Its name: its tools are called `mcp__<name>__<tool>`.
    fn name(&self) -> &str;

    /// Begins a conversation with it.
    fn connect(&self) -> Box<dyn ServerConnection>;
}

/// One conversation with an in-process server.
pub trait ServerConnection: Send + Sync + 'static {
    /// Takes a JSON-RPC message; a request is answered, a notification is not. Requests may run side by side.
    fn handle(&self, message: Value) -> BoxFuture<'_, Option<Value>>;
}
