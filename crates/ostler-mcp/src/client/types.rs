//! Descriptions of a server and what it offers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::server::PromptMessage;

/// A server's answer to the handshake.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerDetails {
    /// Its own name, which may differ from the configured one.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its display name.
    pub title: Option<String>,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// The MCP version of the connection.
    pub protocol_version: String,
    /// Its capabilities.
    pub capabilities: Map<String, Value>,
}

impl ServerDetails {
    /// Reads the answer to `initialize`.
    pub(super) fn from_value(value: &Value) -> Result<Self, String> {
        let text = |path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let protocol_version = text("/protocolVersion").ok_or("`protocolVersion` is missing")?;
        Ok(Self {
            name: text("/serverInfo/name").unwrap_or_default(),
            version: text("/serverInfo/version").unwrap_or_default(),
            title: text("/serverInfo/title"),
            instructions: text("/instructions").filter(|text| !text.is_empty()),
            protocol_version,
            capabilities: value["capabilities"].as_object().cloned().unwrap_or_default(),
        })
    }
}

impl ServerDetails {
    /// Reads the answer to `server/discover`, which must offer this version.
    pub(super) fn from_discovery(value: &Value, version: &str) -> Result<Self, String> {
        let versions =
            value["supportedVersions"].as_array().ok_or("`supportedVersions` is missing")?;
        if !versions.iter().any(|offered| offered == version) {
            return Err(format!("it does not offer MCP {version}"));
        }
        let info = &value["_meta"]["io.modelcontextprotocol/serverInfo"];
        // Drafts of the revision had it here.
        let info = if info.is_object() { info } else { &value["serverInfo"] };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Self {
            name: text(&info["name"]).unwrap_or_default(),
            version: text(&info["version"]).unwrap_or_default(),
            title: text(&info["title"]),
            instructions: text(&value["instructions"]).filter(|text| !text.is_empty()),
            protocol_version: version.to_owned(),
            capabilities: value["capabilities"].as_object().cloned().unwrap_or_default(),
        })
    }
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// The JSON Schema of its structured results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints about its behaviour. Do not rely on those of an untrusted server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How calls run: `taskSupport` says whether as tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
    /// The server's own metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// Hints about a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(default, rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may delete or overwrite data.
    #[serde(default, rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Repeating a call has no further effect.
    #[serde(default, rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It interacts with external systems.
    #[serde(default, rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// A template for resource addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// An address with placeholders.
    pub uri_template: String,
    /// A name for programs.
    #[serde(default)]
    pub name: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptInfo {
    /// Its name.
    pub name: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is required.
    #[serde(default)]
    pub required: bool,
}

/// A rendered prompt.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// What it is for.
    pub description: Option<String>,
    /// Its messages.
    pub messages: Vec<PromptMessage>,
}

/// The state of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Not connected yet, or connecting.
    Pending,
    /// Connected.
    Connected,
    /// Failed, with the reason.
    Failed(String),
    /// Authentication is required, with the server's message.
    NeedsAuth(String),
}
