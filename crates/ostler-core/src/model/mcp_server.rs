//! The records of MCP servers that spaces and sessions have.

use std::collections::{BTreeMap, BTreeSet};

use ostler::proto::mcp::{McpServerConfig, RemoteServer, StdioServer};
use ostler_base::error::{ApiError, Fallible, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::space::check_name;
use crate::records::kept;

/// The most servers of a space, and of a session.
pub(crate) const MOST_SERVERS: usize = 20;
const MOST_VALUES: usize = 100;
const LONGEST_VALUE: usize = 4_000;
const LONGEST_SUMMARY: usize = 300;
/// Names of servers that the server itself gives to agents.
const TAKEN: [&str; 4] = ["ag-ui", "ostler", "schedules", "shared-state"];

/// The servers of one space or of one session. It is never sent to a client: values of variables and headers may be
/// secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSet {
    /// See [`of_space`](Self::of_space) and [`of_session`](Self::of_session).
    pub(crate) id: String,
    pub(crate) owner: String,
    /// The session, if it is one's; it is deleted with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    pub(crate) servers: BTreeMap<String, StoredServer>,
    /// The servers that a session does not use, its own and those of its space.
    #[serde(default)]
    pub(crate) off: BTreeSet<String>,
}

kept!(ServerSet, "mcpServers");

impl ServerSet {
    pub(crate) fn of_space(space: &str) -> String {
        format!("space:{space}")
    }

    pub(crate) fn of_session(session: &str) -> String {
        format!("session:{session}")
    }
}

/// A server, and who configured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredServer {
    pub(crate) config: ServerConfig,
    /// The user who configured it. What that user may do now decides whether it starts.
    pub(crate) by: String,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
}

/// How an MCP server is reached. In all texts `${NAME}` is a variable of the session, such as a secret of its space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schemars(rename = "McpServerConfig")]
pub enum ServerConfig {
    /// A program, which runs on the server's machine.
    Stdio(ProgramConfig),
    /// An address with streamable HTTP; only administrators of the server configure addresses.
    Http(RemoteConfig),
    /// An address with server-sent events.
    Sse(RemoteConfig),
}

/// A program with an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramConfig {
    /// A path, or a name to look up.
    #[schemars(length(min = 1, max = LONGEST_VALUE))]
    pub command: String,
    #[serde(default)]
    #[schemars(length(max = MOST_VALUES))]
    pub args: Vec<String>,
    /// Variables in addition to those of the session.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether the sessions of one user in the space use one process together. Only for servers that keep nothing
    /// between calls: what such a program remembers of one session, the user's other sessions see.
    #[serde(default)]
    pub shared: bool,
}

/// An address with an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteConfig {
    #[schemars(length(min = 1, max = LONGEST_VALUE))]
    pub url: String,
    /// Sent with every request. Without an `Authorization` header each user signs in to the server with an own account.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

impl ServerConfig {
    /// Refuses what is not a valid configuration.
    pub(crate) fn check(&self) -> Fallible<()> {
        let (field, named) = match self {
            Self::Stdio(program) => ("env", &program.env),
            Self::Http(remote) | Self::Sse(remote) => ("headers", &remote.headers),
        };
        // The messages do not quote values, which may be secret.
        for (name, value) in named {
            if !is_name(name) {
                return Err(ApiError::invalid(
                    field,
                    format!("{} is not a valid name", shown(name)),
                ));
            }
            check_value(field, value)?;
        }
        let args = match self {
            Self::Stdio(program) => {
                check_value("command", &program.command)?;
                program.args.as_slice()
            }
            Self::Http(remote) | Self::Sse(remote) => {
                check_value("url", &remote.url)?;
                &[]
            }
        };
        args.iter().try_for_each(|arg| check_value("args", arg))?;
        if args.len() > MOST_VALUES || named.len() > MOST_VALUES {
            let message = format!(
                "a server can have at most {MOST_VALUES} arguments, variables and headers each"
            );
            return Err(ApiError::invalid(field, message));
        }
        match self {
            Self::Stdio(program) if program.command.trim().is_empty() => {
                Err(ApiError::invalid("command", "the command is empty"))
            }
            Self::Http(remote) | Self::Sse(remote) if !is_address(&remote.url) => {
                let message = "the address must begin with https:// or http://";
                Err(ApiError::invalid("url", message))
            }
            _ => Ok(()),
        }
    }

    /// The configuration for the engine.
    pub(crate) fn for_engine(&self, confined: bool) -> McpServerConfig {
        let remote = |remote: &RemoteConfig| RemoteServer {
            url: remote.url.clone(),
            headers: Some(remote.headers.clone()),
            ..RemoteServer::default()
        };
        match self {
            Self::Http(server) => McpServerConfig::Http(remote(server)),
            Self::Sse(server) => McpServerConfig::Sse(remote(server)),
            Self::Stdio(program) => {
                let mut server = StdioServer {
                    command: program.command.clone(),
                    args: Some(program.args.clone()),
                    env: Some(program.env.clone()),
                    ..StdioServer::default()
                };
                for (name, is_set) in [("shared", program.shared), ("confined", confined)] {
                    if is_set {
                        server.extra.insert(name, true);
                    }
                }
                McpServerConfig::Stdio(server)
            }
        }
    }

    /// Whether sessions share its program.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Stdio(program) if program.shared)
    }

    /// What is started or reached, in one line, without variables and headers.
    pub fn summary(&self) -> String {
        match self {
            Self::Stdio(program) => {
                let words = std::iter::once(&program.command).chain(&program.args);
                let line = words.map(String::as_str).collect::<Vec<_>>().join(" ");
                let end = line.floor_char_boundary(LONGEST_SUMMARY);
                let cut = if end < line.len() { "…" } else { "" };
                format!("{}{cut}", line[..end].replace(char::is_control, " "))
            }
            Self::Http(remote) | Self::Sse(remote) => remote.url.clone(),
        }
    }
}

/// Scripts and keys have several lines; a command, an address and a header have one.
fn check_value(field: &str, value: &str) -> Fallible<()> {
    let has_lines = ["args", "env"].contains(&field);
    let is_odd = |c: char| c.is_control() && !(has_lines && ['\n', '\t'].contains(&c));
    if value.chars().count() > LONGEST_VALUE || value.contains(is_odd) {
        let lines = if has_lines { "" } else { ", on one line" };
        let message = format!("a value must have at most {LONGEST_VALUE} characters{lines}");
        return Err(ApiError::invalid(field, message));
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 128 && name.chars().all(is_fine)
}

fn is_address(url: &str) -> bool {
    ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme))
}

/// Refuses an invalid name of a server, and names that the server itself uses. Without an underscore in it, no name can be
/// taken for another one in the names of tools (`mcp__NAME__TOOL`).
pub(crate) fn check_server_name(name: &str) -> Fallible<()> {
    check_name("name", name)?;
    if TAKEN.contains(&name) {
        let message = format!("{name} is a name that the server itself uses");
        return Err(ApiError::invalid("name", message).hint("use another name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(config: Value) -> Result<ServerConfig, String> {
        let config: ServerConfig =
            serde_json::from_value(config).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }

    // Mutant: `RemoteConfig` and `ProgramConfig` without `deny_unknown_fields`.
    #[test]
    fn an_entry_has_nothing_that_starts_another_program_or_allows_tools() {
        read(json!({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "shared": true})).unwrap();
        read(
            json!({"type": "http", "url": "https://a.example/mcp", "headers": {"X-Key": "${KEY}"}}),
        )
        .unwrap();
        for odd in [
            json!({"type": "http", "url": "https://a.example", "headersHelper": "touch made"}),
            json!({"type": "http", "url": "https://a.example", "tools": [{"name": "x", "permission_policy": "always_allow"}]}),
            json!({"type": "http", "url": "file:///etc/passwd"}),
            json!({"type": "stdio", "command": "x", "confined": false}),
            json!({"type": "stdio", "command": "x", "cwd": "/"}),
            json!({"type": "stdio", "command": " "}),
            json!({"type": "stdio", "command": "x", "args": ["a\0b"]}),
            json!({"type": "stdio", "command": "x\ny"}),
            json!({"type": "http", "url": "https://a.example", "headers": {"X": "a\nb"}}),
            json!({"type": "stdio", "command": "x", "env": {"A=B": "c"}}),
            json!({"type": "stdio", "command": "x", "args": vec!["a"; 200]}),
            json!({"type": "sdk", "name": "x"}),
            json!({"type": "ws", "url": "wss://a.example"}),
            json!({"command": "x"}),
        ] {
            read(odd.clone()).expect_err(&odd.to_string());
        }
    }

    #[test]
    fn an_error_does_not_quote_a_value() {
        let odd = json!({"type": "stdio", "command": "x", "env": {"TOKEN": "canary\u{7}"}});
        assert!(!read(odd).unwrap_err().contains("canary"));
    }

    // Mutant: `check_server_name` that does not look at `TAKEN`.
    #[test]
    fn a_server_cannot_take_the_name_of_another_one() {
        check_server_name("files").unwrap();
        for name in ["schedules", "ag-ui", "ag_ui", "a__b", "mcp__x", "A", ""] {
            check_server_name(name).expect_err(name);
        }
    }
}
