//! Whether the MCP servers can be reached.

use ostler::engine::StartContext;
use ostler_proto::mcp::McpConnection;

use super::Finding;
use crate::args::Args;
use crate::mcp::health;

/// Connects to every server that a session would use. Nothing is reported if there are none.
pub(super) async fn check(args: &Args, scene: &StartContext) -> Vec<Finding> {
    // A session that does not start was reported with the settings.
    let Ok(servers) = health::check(args, scene).await else { return Vec::new() };
    let finding = |server: &ostler_proto::mcp::McpServerStatus| {
        let name = &server.name;
        let text = format!("MCP server {name}: {}", health::state_text(server).1);
        match server.status {
            McpConnection::Connected | McpConnection::Disabled => Finding::good(text),
            McpConnection::NeedsAuth => Finding::odd(text, "sign in, or remove the server"),
            McpConnection::Pending => {
                Finding::odd(text, "raise MCP_TIMEOUT, or look at the server")
            }
            _ => Finding::bad(text, format!("correct it, or remove it: ostler mcp get {name}")),
        }
    };
    servers.iter().map(finding).collect()
}
