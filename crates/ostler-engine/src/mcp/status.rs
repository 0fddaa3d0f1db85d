//! The state of servers, with the names of the wire protocol.

use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::system::InitMcpServer;
use serde_json::{Value, json};

use super::{Entry, NotConnected, ServerState, Servers};

const CONNECTED: &str = "connected";

impl Servers {
    /// The state of every server, for `mcp_status`.
    pub(crate) fn status(&self) -> Vec<Value> {
        let state = self.lock();
        state.entries.iter().map(|(name, entry)| status(name, entry)).collect()
    }

    /// The short form, for `init`.
    pub(crate) fn summary(&self) -> Vec<InitMcpServer> {
        let state = self.lock();
        let short = |(name, entry): (&String, &Entry)| {
            let (status, _) = connection(entry);
            json!({"name": name, "status": status, "source": entry.source()})
        };
        let servers = state.entries.iter().map(short);
        servers.filter_map(|server| serde_json::from_value(server).ok()).collect()
    }
}

fn status(name: &str, entry: &Entry) -> Value {
    let (transport, config) = shown(&entry.config);
    let mut status = json!({
        "name": name,
        "transport": transport,
        "scope": entry.scope,
        "source": entry.source(),
    });
    if let Some(config) = config {
        status["config"] = config;
    }
    let (connection, error) = connection(entry);
    status["status"] = json!(connection);
    if let Some(error) = error {
        status["error"] = json!(error);
    }
    if let ServerState::Connected(server) = &entry.how
        && connection == CONNECTED
    {
        let (server_name, version) = server.info();
        let tools = server.tools().into_iter().map(|tool| {
            let hints = tool.annotations.as_ref().map_or_else(|| json!({}), hints);
            json!({"name": tool.name, "annotations": hints})
        });
        status["serverInfo"] = json!({"name": server_name, "version": version});
        status["tools"] = tools.collect();
        let changes = entry.changes(name);
        if !changes.is_empty() {
            status["warnings"] = json!(changes);
        }
    }
    status
}

/// The state of a connection, and why it failed.
fn connection(entry: &Entry) -> (&'static str, Option<String>) {
    let failed = |why: &NotConnected| {
        let state = if why.needs_auth { "needs-auth" } else { "failed" };
        (state, Some(why.reason.clone()))
    };
    match &entry.how {
        ServerState::Pending => ("pending", None),
        ServerState::Disabled => ("disabled", None),
        ServerState::Failed(why) => failed(why),
        ServerState::Connected(server) => match server.lost() {
            Some(reason) => failed(&NotConnected { reason, needs_auth: server.needs_auth() }),
            None => (CONNECTED, None),
        },
    }
}

/// The configuration of a server without variables and headers, which may be secret.
fn shown(config: &McpServerConfig) -> (&'static str, Option<Value>) {
    match config {
        McpServerConfig::Stdio(server) => {
            let mut shown = json!({"type": "stdio", "command": server.command});
            if let Some(args) = &server.args {
                shown["args"] = json!(args);
            }
            ("stdio", Some(shown))
        }
        McpServerConfig::Http(server) => ("http", Some(json!({"type": "http", "url": server.url}))),
        McpServerConfig::Sse(server) => ("sse", Some(json!({"type": "sse", "url": server.url}))),
        McpServerConfig::Ws(server) => ("ws", Some(json!({"type": "ws", "url": server.url}))),
        McpServerConfig::Sdk(_) => ("sdk", None),
        _ => ("unknown", None),
    }
}

/// Hints with the short names of the status.
fn hints(annotations: &Value) -> Value {
    let mut hints = json!({});
    for (long, short) in [
        ("readOnlyHint", "readOnly"),
        ("destructiveHint", "destructive"),
        ("openWorldHint", "openWorld"),
    ] {
        if let Some(hint) = annotations.get(long).and_then(Value::as_bool) {
            hints[short] = json!(hint);
        }
    }
    hints
}
