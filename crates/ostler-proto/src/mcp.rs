//! MCP: how servers are configured and reported. Their own JSON-RPC messages travel as plain JSON.

use std::collections::BTreeMap;

use ostler_proto_derive::Wire;
use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::wire::{self, WireObject};
use crate::{Extra, Num, UnknownObject};

/// How a server is reached. `type` may be left out for `stdio`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum McpServerConfig {
    /// A child process; messages go over its standard streams.
    Stdio(StdioServer),
    /// A server behind the older event-stream transport.
    Sse(RemoteServer),
    /// A server behind the streamable HTTP transport. `streamable-http` is another name of the type, kept in `extra`.
    Http(RemoteServer),
    /// A server behind a WebSocket.
    Ws(RemoteServer),
    /// A server inside the host, reached through `mcp_message`.
    Sdk(SdkServer),
    /// A server behind the vendor's proxy; only ever reported, never configured.
    ClaudeAiProxy(ProxyServer),
    /// A kind this version does not know.
    Unknown(UnknownObject),
}

impl WireObject for McpServerConfig {
    const NAME: &'static str = "McpServerConfig";

    fn read<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let (tag, rest) = wire::split_tag(map, "type")?;
        match tag.as_str() {
            None if tag.is_missing() => named("stdio", StdioServer::read(rest).map(Self::Stdio)),
            Some("stdio") => named("stdio", StdioServer::read(rest)).map(|server| {
                Self::Stdio(StdioServer { r#type: Some("stdio".to_owned()), ..server })
            }),
            Some("sse") => named("sse", RemoteServer::read(rest).map(Self::Sse)),
            Some("http") => named("http", RemoteServer::read(rest).map(Self::Http)),
            Some(STREAMABLE) => named(STREAMABLE, RemoteServer::read(rest)).map(|mut server| {
                server.extra.insert("type", STREAMABLE);
                Self::Http(server)
            }),
            Some("ws") => named("ws", RemoteServer::read(rest).map(Self::Ws)),
            Some("sdk") => named("sdk", SdkServer::read(rest).map(Self::Sdk)),
            Some("claudeai-proxy") => {
                named("claudeai-proxy", ProxyServer::read(rest).map(Self::ClaudeAiProxy))
            }
            _ => UnknownObject::read(Self::NAME, "type", tag, rest).map(Self::Unknown),
        }
    }

    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Stdio(server) => server.write(map),
            Self::Sse(server) => tagged("sse", server, map),
            // It was read with the other name, which is written with the unknown fields.
            Self::Http(server) if server.extra.get("type").is_some() => server.write(map),
            Self::Http(server) => tagged("http", server, map),
            Self::Ws(server) => tagged("ws", server, map),
            Self::Sdk(server) => tagged("sdk", server, map),
            Self::ClaudeAiProxy(server) => tagged("claudeai-proxy", server, map),
            Self::Unknown(server) => server.write(map),
        }
    }
}

/// The other name of `http`.
const STREAMABLE: &str = "streamable-http";

fn named<T, E: serde::de::Error>(kind: &str, read: Result<T, E>) -> Result<T, E> {
    read.map_err(|error| wire::in_variant(kind, error))
}

fn tagged<T: WireObject, M: SerializeMap>(
    tag: &str,
    server: &T,
    map: &mut M,
) -> Result<(), M::Error> {
    map.serialize_entry("type", tag)?;
    server.write(map)
}

wire::serde_through_object!(McpServerConfig);

/// `stdio`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct StdioServer {
    /// `stdio` or absent; both spellings are in use.
    pub r#type: Option<String>,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Added to its environment.
    pub env: Option<BTreeMap<String, String>>,
    /// How long one call may take, in milliseconds.
    pub timeout: Option<Num>,
    /// Whether its tools are always shown to the model.
    pub always_load: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `sse`, `http` and `ws`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct RemoteServer {
    /// The address.
    pub url: String,
    /// Sent with every request.
    pub headers: Option<BTreeMap<String, String>>,
    /// Policies for single tools.
    pub tools: Option<Vec<ToolPolicy>>,
    /// How long one call may take, in milliseconds.
    pub timeout: Option<Num>,
    /// Whether its tools are always shown to the model.
    pub always_load: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `sdk`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SdkServer {
    /// Its name, the `server_name` of `mcp_message`.
    pub name: String,
    /// How long one call may take, in milliseconds.
    pub timeout: Option<Num>,
    /// Policies for single tools.
    pub tools: Option<Vec<ToolPolicy>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `claudeai-proxy`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ProxyServer {
    /// The address.
    pub url: String,
    /// The server's id at the vendor.
    pub id: String,
    /// How long one call may take, in milliseconds.
    pub timeout: Option<Num>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The policy for one tool of a server.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ToolPolicy {
    /// The tool.
    pub name: String,
    /// `always_allow`, `always_ask` or `always_deny`.
    pub permission_policy: Option<String>,
    /// The most an organisation allows: `allow`, `ask` or `blocked`.
    pub org_max_permission: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Which server a tool comes from.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct McpServerProvenance {
    /// The server.
    pub name: String,
    /// Where it was configured.
    pub source: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(name, status))]
#[non_exhaustive]
pub struct McpServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: McpConnection,
    /// Its own description.
    pub server_info: Option<McpServerInfo>,
    /// Why it failed.
    pub error: Option<String>,
    /// How it is configured.
    pub config: Option<McpServerConfig>,
    /// Where it was configured.
    pub scope: Option<String>,
    /// The same, in the format of the new level.
    pub source: Option<String>,
    /// How it is reached.
    pub transport: Option<String>,
    /// What it offers.
    pub capabilities: Option<Value>,
    /// Its tools.
    pub tools: Option<Vec<McpToolStatus>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// State of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum McpConnection {
    /// Connected.
    Connected,
    /// Failed.
    Failed,
    /// A login is needed.
    NeedsAuth,
    /// Connecting.
    Pending,
    /// It is disabled.
    Disabled,
    /// A state this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A server's own description.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct McpServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A tool of a server.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct McpToolStatus {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Hints: `readOnly`, `destructive`, `openWorld`.
    pub annotations: Option<Value>,
    /// The server's own metadata.
    #[wire(name = "_meta")]
    pub meta: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Mutant: the other name of `http` is not kept.
    #[test]
    fn a_configuration_is_written_back_with_the_name_of_its_type() {
        for (kind, is_http) in [("http", true), ("streamable-http", true), ("ws", false)] {
            let written = json!({"type": kind, "url": "x://y", "headersHelper": "z"});
            let config: McpServerConfig = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(matches!(config, McpServerConfig::Http(_)), is_http, "{kind}");
            assert!(!matches!(config, McpServerConfig::Unknown(_)), "{kind}");
            assert_eq!(json!(config), written);
        }
    }
}
