//! The state of servers, with the names of the wire protocol.

use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::system::InitMcpServer;
use serde_json::{Value, json};

use super::{Entry, NotConnected, ServerState, Servers};

impl Servers {
    /// The state of every server, for `mcp_status`.
    pub(crate) fn status(&self) -> Vec<Value> {
        let state = self.lock();
        state.entries.iter().map(|(name, entry)| status(name, entry)).collect()
    }

    /// The short form, for `init`.
    pub(crate) fn summary(&self) -> Vec<InitMcpServer> {
        let short = |status: Value| json!({"name": status["name"], "status": status["status"], "source": status["source"]});
        self.status()
            .into_iter()
            .filter_map(|status| serde_json::from_value(short(status)).ok())
            .collect()
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
    let failed = |status: &mut Value, why: &NotConnected| {
        status["status"] = json!(if why.needs_auth { "needs-auth" } else { "failed" });
        status["error"] = json!(why.reason);
    };
    match &entry.how {
        ServerState::Pending => status["status"] = json!("pending"),
        ServerState::Disabled => status["status"] = json!("disabled"),
        ServerState::Failed(why) => failed(&mut status, why),
        ServerState::Connected(server) => match server.lost() {
            Some(reason) => {
                let needs_auth = server.needs_auth();
                failed(&mut status, &NotConnected { reason, needs_auth });
            }
            None => {
                let (server_name, version) = server.info();
                let tools = server.tools().into_iter().map(|tool| {
                    let hints = tool.annotations.as_ref().map_or_else(|| json!({}), hints);
                    json!({"name": tool.name, "annotations": hints})
                });
                status["status"] = json!("connected");
                status["serverInfo"] = json!({"name": server_name, "version": version});
                status["tools"] = tools.collect();
            }
        },
    }
    status
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
