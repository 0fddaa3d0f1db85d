//! Subagents as a host defines them in `initialize`.

use std::collections::BTreeMap;
use std::fmt;

use ostler_proto_derive::Wire;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Extra;
use crate::mcp::McpServerConfig;
use crate::permission::PermissionMode;

/// A subagent.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// When the model should use it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use; all of its parent's when absent.
    pub tools: Option<Vec<String>>,
    /// Tools it may not use.
    pub disallowed_tools: Option<Vec<String>>,
    /// An alias, a full model name, or `inherit`.
    pub model: Option<String>,
    /// Further MCP servers.
    pub mcp_servers: Option<Vec<AgentMcpServer>>,
    /// Skills it starts with.
    pub skills: Option<Vec<String>>,
    /// Its limit on turns.
    pub max_turns: Option<u64>,
    /// Repeated to the model with every turn.
    #[wire(name = "criticalSystemReminder_EXPERIMENTAL")]
    pub critical_system_reminder: Option<String>,
    /// Sent before the first prompt.
    pub initial_prompt: Option<String>,
    /// Whether it always runs in the background.
    pub background: Option<bool>,
    /// Which memory it keeps: `user`, `project` or `local`.
    pub memory: Option<String>,
    /// Its effort: a level or a number.
    pub effort: Option<Value>,
    /// Its permission mode, never wider than its parent's.
    pub permission_mode: Option<PermissionMode>,
    /// Whether it ignores the project's CLAUDE.md.
    #[wire(name = "omitClaudeMd")]
    pub omit_claude_md: Option<bool>,
    /// The number of tokens at which its context is compacted.
    pub auto_compact_window: Option<u64>,
    /// An agent that watches it.
    pub observer: Option<String>,
    /// The message for the observer.
    pub observer_message: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An MCP server of a subagent: the name of a known one, or new ones with their configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentMcpServer {
    /// A server of the session.
    Named(String),
    /// Its own servers.
    Own(BTreeMap<String, McpServerConfig>),
}

impl Serialize for AgentMcpServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(name) => serializer.serialize_str(name),
            Self::Own(servers) => servers.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AgentMcpServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AgentMcpServerVisitor)
    }
}

struct AgentMcpServerVisitor;

impl<'de> Visitor<'de> for AgentMcpServerVisitor {
    type Value = AgentMcpServer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a server name or an object of servers")
    }

    fn visit_str<E>(self, name: &str) -> Result<AgentMcpServer, E> {
        Ok(AgentMcpServer::Named(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AgentMcpServer, A::Error> {
        let mut servers = BTreeMap::new();
        while let Some((name, server)) = map.next_entry()? {
            servers.insert(name, server);
        }
        Ok(AgentMcpServer::Own(servers))
    }
}
