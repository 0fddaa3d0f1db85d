//! The permissions of single tools in a server's configuration: `tools: [{name, permission_policy,
//! org_max_permission}]`.

use ostler_proto::mcp::{McpServerConfig, ToolPolicy};
use serde_json::Value;

use super::tool::plain;
use crate::tool::ServerToolPolicy;

/// A tool's permission in a configuration. The strictest of several entries holds.
pub(super) fn of(config: &McpServerConfig, tool: &str) -> ServerToolPolicy {
    let entries = match config {
        McpServerConfig::Sse(server)
        | McpServerConfig::Http(server)
        | McpServerConfig::Ws(server) => server.tools.clone(),
        McpServerConfig::Sdk(server) => server.tools.clone(),
        // Not part of the published configuration of a stdio server, but used there.
        McpServerConfig::Stdio(server) => match server.extra.get("tools").map(entries) {
            Some(None) => return ServerToolPolicy::AlwaysAsk,
            Some(entries) => entries,
            None => None,
        },
        _ => None,
    };
    let entries = entries.unwrap_or_default();
    let meant = entries.iter().filter(|it| it.name == tool || plain(&it.name) == plain(tool));
    meant.map(of_entry).max().unwrap_or_default()
}

/// The entries of a list; `None` for a list that cannot be read.
fn entries(list: &Value) -> Option<Vec<ToolPolicy>> {
    serde_json::from_value(list.clone()).ok()
}

/// An unknown value requires approval.
fn of_entry(entry: &ToolPolicy) -> ServerToolPolicy {
    let policy = match entry.permission_policy.as_deref() {
        None => ServerToolPolicy::Unset,
        Some("always_allow") => ServerToolPolicy::AlwaysAllow,
        Some("always_deny") => ServerToolPolicy::AlwaysDeny,
        Some(_) => ServerToolPolicy::AlwaysAsk,
    };
    let most = match entry.org_max_permission.as_deref() {
        // No limit: the least strict.
        None | Some("allow") => ServerToolPolicy::AlwaysAllow,
        Some("blocked") => ServerToolPolicy::AlwaysDeny,
        Some(_) => ServerToolPolicy::AlwaysAsk,
    };
    policy.max(most)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Mutant: `of` that looks at `permission_policy` only, or only at remote servers.
    #[test]
    fn every_kind_of_server_limits_its_tools_and_the_strictest_entry_holds() {
        use ServerToolPolicy::{AlwaysAllow, AlwaysAsk, AlwaysDeny, Unset};
        let kinds = [
            json!({"type": "stdio", "command": "x"}),
            json!({"command": "x"}),
            json!({"type": "http", "url": "http://x"}),
            json!({"type": "sse", "url": "http://x"}),
            json!({"type": "ws", "url": "ws://x"}),
            json!({"type": "streamable-http", "url": "http://x"}),
            json!({"type": "sdk", "name": "x"}),
        ];
        let entries = [
            (json!([]), Unset),
            (json!([{"name": "other", "permission_policy": "always_deny"}]), Unset),
            (json!([{"name": "add"}]), Unset),
            (json!([{"name": "add", "permission_policy": "always_allow"}]), AlwaysAllow),
            (json!([{"name": "add", "permission_policy": "always_ask"}]), AlwaysAsk),
            (json!([{"name": "add", "permission_policy": "always_deny"}]), AlwaysDeny),
            (json!([{"name": "add", "permission_policy": "sometimes"}]), AlwaysAsk),
            (json!([{"name": "add", "org_max_permission": "allow"}]), Unset),
            (json!([{"name": "add", "org_max_permission": "ask"}]), AlwaysAsk),
            (json!([{"name": "add", "org_max_permission": "blocked"}]), AlwaysDeny),
            (
                json!([{"name": "add", "permission_policy": "always_allow", "org_max_permission": "blocked"}]),
                AlwaysDeny,
            ),
            (
                json!([{"name": "add", "permission_policy": "always_deny"},
                       {"name": "add", "permission_policy": "always_allow"}]),
                AlwaysDeny,
            ),
        ];
        for kind in kinds {
            for (tools, expected) in &entries {
                let mut config = kind.clone();
                config["tools"] = tools.clone();
                let config: McpServerConfig = serde_json::from_value(config).unwrap();
                assert_eq!(of(&config, "add"), *expected, "{kind} {tools}");
            }
        }
        let odd = json!({"command": "x", "tools": "add"});
        let odd: McpServerConfig = serde_json::from_value(odd).unwrap();
        assert_eq!(of(&odd, "add"), AlwaysAsk, "a list that cannot be read");
    }
}
