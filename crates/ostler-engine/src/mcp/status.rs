//! The state of servers, with the names of the wire protocol.

use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::system::InitMcpServer;
use serde_json::{Value, json};

use super::{Entry, McpToolInfo, NotConnected, ServerState, Servers};

const CONNECTED: &str = "connected";

impl Servers {
    /// The state of every server, for `mcp_status`.
    pub(crate) fn status(&self) -> Vec<Value> {
        let state = self.lock();
        state.entries.iter().map(|(name, entry)| status(self, name, entry)).collect()
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

/// The most bytes of a tool's metadata about its user interface.
const MAX_UI: usize = 4096;

fn status(servers: &Servers, name: &str, entry: &Entry) -> Value {
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
    if entry.life.attempts > 0 {
        status["attempts"] = json!(entry.life.attempts);
        status["lastError"] = json!(entry.life.reason);
    }
    if let ServerState::Connected(server) = &entry.how {
        let log = server.log();
        if !log.is_empty() {
            status["log"] = json!(log);
        }
    }
    if let ServerState::Connected(server) = &entry.how
        && connection == CONNECTED
    {
        let (server_name, version) = server.info();
        let tools = server.tools().into_iter().map(|tool| {
            let hints = tool.annotations.as_ref().map_or_else(|| json!({}), hints);
            let mut shown = json!({"name": tool.name, "annotations": hints});
            if let Some(meta) = ui(&tool) {
                shown["_meta"] = meta;
            }
            shown
        });
        status["serverInfo"] = json!({"name": server_name, "version": version});
        status["tools"] = tools.collect();
        let mut changes = Vec::new();
        entry.tools(servers, name, |change| changes.push(change));
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
        ServerState::Down(why) => ("pending", Some(why.reason.clone())),
        ServerState::Connected(server) => match server.lost() {
            Some(reason) => {
                let needs_auth = server.needs_auth();
                failed(&NotConnected { reason, needs_auth, may_recover: true })
            }
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

/// What a tool's metadata says about its user interface (MCP Apps), if it is valid and short. All other metadata is
/// between the server and the engine.
fn ui(tool: &McpToolInfo) -> Option<Value> {
    let meta = tool.meta.as_ref()?;
    let mut shown = json!({});
    let is_address = |value: &Value| value.as_str().is_some_and(|uri| uri.starts_with("ui://"));
    let is_short = |value: &Value| value.to_string().len() <= MAX_UI;
    if let Some(flat) = meta.get("ui/resourceUri").filter(|it| is_address(it) && is_short(it)) {
        shown["ui/resourceUri"] = flat.clone();
    }
    match meta.get("ui") {
        None | Some(Value::Null) => {}
        Some(ui) => {
            let audiences = ui.get("visibility").filter(|it| !it.is_null());
            let is_known = |it: &Value| matches!(it.as_str(), Some("model" | "app"));
            let has_valid_audiences = audiences
                .is_none_or(|it| it.as_array().is_some_and(|list| list.iter().all(is_known)));
            let has_valid_address = ui.get("resourceUri").is_none_or(is_address);
            if ui.is_object() && has_valid_audiences && has_valid_address && is_short(ui) {
                shown["ui"] = ui.clone();
            } else if !ui.is_object() || audiences.is_some() {
                // Who may use the tool is said even if the rest cannot be used.
                let list = audiences.and_then(Value::as_array).into_iter().flatten();
                let known: Vec<&Value> = list.filter(|it| is_known(it)).take(2).collect();
                shown["ui"] = json!({"visibility": known});
            }
        }
    }
    shown.as_object().is_some_and(|shown| !shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_metadata_about_the_user_interface_is_shown() {
        let shown = |meta: Value| ui(&McpToolInfo { meta: Some(meta), ..McpToolInfo::default() });
        let good = json!({"resourceUri": "ui://a", "visibility": ["model"], "more": 1});
        let meta = json!({"ui": good, "ui/resourceUri": "ui://b", "secret": 1});
        assert_eq!(shown(meta), Some(json!({"ui/resourceUri": "ui://b", "ui": good})));
        for (meta, expected) in [
            (json!({"secret": 1}), None),
            (json!({"ui": null, "ui/resourceUri": "http://x"}), None),
            (json!({"ui": {"resourceUri": "http://x"}}), None),
            (json!({"ui": {"resourceUri": "ui://x", "big": "x".repeat(MAX_UI)}}), None),
            (json!({"ui": 7}), Some(json!({"ui": {"visibility": []}}))),
            (
                json!({"ui": {"resourceUri": 1, "visibility": ["app", "all"]}}),
                Some(json!({"ui": {"visibility": ["app"]}})),
            ),
        ] {
            assert_eq!(shown(meta.clone()), expected, "{meta}");
        }
    }
}
