//! The MCP servers that settings allow and deny: `allowedMcpServers` and `deniedMcpServers`, and the administrator's
//! `managed-mcp.json`.
//!
//! Every list is a restriction, whichever file it is in: a server that one list denies, or that an allow list does not
//! include, is not connected. Servers inside the host are the host's own code; only deny lists apply to them.

use std::collections::BTreeMap;

use ostler_proto::mcp::McpServerConfig;
use serde::Deserialize;

use super::server_url;

/// An entry of a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum ServerEntry {
    /// A server by its name.
    Name {
        /// The name.
        #[serde(rename = "serverName")]
        name: String,
    },
    /// A program with exactly these arguments.
    Command {
        /// The program and its arguments.
        #[serde(rename = "serverCommand")]
        command: Vec<String>,
    },
    /// An address, in which `*` matches anything.
    Url {
        /// The address.
        #[serde(rename = "serverUrl")]
        url: String,
    },
}

/// The lists of all settings files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerLists {
    /// Servers that are denied.
    pub denied: Vec<ServerEntry>,
    /// Lists of allowed servers; a server must be in every one of them.
    pub allowed: Vec<Vec<ServerEntry>>,
    /// The servers of `managed-mcp.json`. If there is such a file, there are no others.
    pub managed: Option<BTreeMap<String, McpServerConfig>>,
}

impl ServerLists {
    /// Why a server must not be connected, if the lists forbid it.
    pub fn refusal(&self, name: &str, config: &McpServerConfig) -> Option<String> {
        if self.denied.iter().any(|entry| entry.names(name, config)) {
            return Some(format!("the settings deny the MCP server {name} (deniedMcpServers)"));
        }
        let is_in_host = matches!(config, McpServerConfig::Sdk(_));
        let is_other = |managed: &BTreeMap<_, _>| managed.get(name) != Some(config);
        if !is_in_host && self.managed.as_ref().is_some_and(is_other) {
            return Some(format!(
                "the administrator's managed-mcp.json does not contain the MCP server {name}, and no others are allowed"
            ));
        }
        let is_missing = |list: &Vec<ServerEntry>| !is_allowed(list, name, config);
        (!is_in_host && self.allowed.iter().any(is_missing)).then(|| {
            format!("the settings do not allow the MCP server {name}: add it to allowedMcpServers")
        })
    }
}

/// Whether a list allows a server. If the list has commands or addresses, the server's must be among them: its name
/// alone could be chosen freely in its configuration.
fn is_allowed(list: &[ServerEntry], name: &str, config: &McpServerConfig) -> bool {
    let is_of_kind = |entry: &ServerEntry| match config {
        McpServerConfig::Stdio(_) => matches!(entry, ServerEntry::Command { .. }),
        _ => matches!(entry, ServerEntry::Url { .. }),
    };
    let by_kind = list.iter().any(is_of_kind);
    let mut entries = list.iter().filter(|entry| !by_kind || is_of_kind(entry));
    entries.any(|entry| entry.names(name, config))
}

impl ServerEntry {
    fn names(&self, name: &str, config: &McpServerConfig) -> bool {
        match (self, config) {
            (Self::Name { name: listed }, _) => listed == name,
            (Self::Command { command }, McpServerConfig::Stdio(server)) => {
                let args = server.args.iter().flatten();
                command.iter().eq(std::iter::once(&server.command).chain(args))
            }
            (
                Self::Url { url },
                McpServerConfig::Sse(server)
                | McpServerConfig::Http(server)
                | McpServerConfig::Ws(server),
            ) => server_url::fits(url, &server.url),
            (Self::Url { url }, McpServerConfig::ClaudeAiProxy(server)) => {
                server_url::fits(url, &server.url)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entries(list: Value) -> Vec<ServerEntry> {
        serde_json::from_value(list).unwrap()
    }

    fn is_refused(lists: &ServerLists, config: Value) -> bool {
        lists.refusal("x", &serde_json::from_value(config).unwrap()).is_some()
    }

    // Seen to fail when `refusal` compares only names, and when a later list replaces an earlier one.
    #[test]
    fn a_server_must_be_in_every_allow_list_and_in_no_deny_list() {
        let program = json!({"command": "run", "args": ["it"]});
        let remote = json!({"type": "http", "url": "https://mcp.example.com/v1"});
        let inside = json!({"type": "sdk", "name": "x"});
        for (denied, allowed, expected) in [
            (json!([]), vec![], [false, false, false]),
            (json!([{"serverName": "x"}]), vec![], [true, true, true]),
            (json!([{"serverCommand": ["run", "it"]}]), vec![], [true, false, false]),
            (json!([{"serverCommand": ["run"]}]), vec![], [false, false, false]),
            (json!([{"serverUrl": "https://*.example.com/*"}]), vec![], [false, true, false]),
            (json!([{"serverUrl": "https://MCP.Example.com./*"}]), vec![], [false, true, false]),
            (json!([]), vec![json!([])], [true, true, false]),
            (json!([]), vec![json!([{"serverName": "x"}])], [false, false, false]),
            (json!([]), vec![json!([{"serverName": "y"}])], [true, true, false]),
            (
                json!([]),
                vec![json!([{"serverName": "x"}, {"serverCommand": ["other"]}])],
                [true, false, false],
            ),
            (
                json!([]),
                vec![json!([{"serverName": "x"}]), json!([{"serverUrl": "https://*"}])],
                [true, false, false],
            ),
            (
                json!([]),
                vec![json!([{"serverName": "y"}]), json!([{"serverName": "x"}])],
                [true, true, false],
            ),
            (json!([{"serverName": "x"}]), vec![json!([{"serverName": "x"}])], [true, true, true]),
        ] {
            let lists = ServerLists {
                denied: entries(denied.clone()),
                allowed: allowed.iter().cloned().map(entries).collect(),
                managed: None,
            };
            let really = [&program, &remote, &inside].map(|it| is_refused(&lists, it.clone()));
            assert_eq!(really, expected, "{denied} {allowed:?}");
        }
    }

    // Mutant: `managed` is not compared.
    #[test]
    fn with_servers_of_the_administrator_there_are_no_others() {
        let config = |value: Value| serde_json::from_value::<McpServerConfig>(value).unwrap();
        let own = config(json!({"command": "run", "args": ["it"]}));
        let managed = Some(BTreeMap::from([("x".to_owned(), own.clone())]));
        let lists = ServerLists { managed, ..ServerLists::default() };
        assert_eq!(lists.refusal("x", &own), None);
        assert_eq!(lists.refusal("y", &config(json!({"type": "sdk", "name": "y"}))), None);
        for (name, other) in [("y", own), ("x", config(json!({"command": "run"})))] {
            assert!(lists.refusal(name, &other).unwrap().contains("managed-mcp.json"), "{name}");
        }
    }

    #[test]
    fn an_entry_of_an_unknown_kind_is_refused() {
        assert!(serde_json::from_value::<ServerEntry>(json!({"server": "x"})).is_err());
        assert!(serde_json::from_value::<ServerEntry>(json!("x")).is_err());
    }
}
