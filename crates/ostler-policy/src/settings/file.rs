//! One settings file.

use std::collections::BTreeMap;
use std::path::Path;

use ostler_proto::launch::ModelPrice;
use ostler_proto::permission::PermissionMode;
use ostler_proto::sandbox::SandboxSettings;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ServerEntry, SettingsError, invalid};

/// The contents of a settings file that this version uses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileSettings {
    /// Rules, mode and directories.
    pub permissions: FilePermissions,
    /// Hooks.
    pub hooks: Option<Value>,
    /// Variables for the session and its children.
    pub env: BTreeMap<String, String>,
    /// The model.
    pub model: Option<String>,
    /// Prices of models, by name.
    pub model_prices: BTreeMap<String, FilePrice>,
    /// The sandbox of commands.
    pub sandbox: Option<SandboxSettings>,
    /// The style of answers.
    pub output_style: Option<String>,
    /// Disables all hooks.
    pub disable_all_hooks: Option<bool>,
    /// A command that prints the key for the API.
    pub api_key_helper: Option<String>,
    /// The only MCP servers that a session may use.
    pub allowed_mcp_servers: Option<Vec<ServerEntry>>,
    /// MCP servers that a session may not use.
    pub denied_mcp_servers: Vec<ServerEntry>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The price of a model, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePrice {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl From<FilePrice> for ModelPrice {
    fn from(FilePrice { input, output, cache_read, cache_write }: FilePrice) -> Self {
        Self { input, output, cache_read, cache_write }
    }
}

/// The `permissions` of a settings file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilePermissions {
    /// Rules for calls that run without approval.
    pub allow: Vec<String>,
    /// Rules for calls that do not run.
    pub deny: Vec<String>,
    /// Rules for calls that require approval.
    pub ask: Vec<String>,
    /// The mode to start in.
    pub default_mode: Option<PermissionMode>,
    /// Further working directories.
    pub additional_directories: Vec<String>,
    /// `disable`: `bypassPermissions` is disabled.
    pub disable_bypass_permissions_mode: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Reads settings from text.
pub(super) fn parse(path: &Path, text: &str) -> Result<FileSettings, SettingsError> {
    // Some editors leave an empty file behind.
    if text.trim().is_empty() {
        return Ok(FileSettings::default());
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let settings = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let pointer = error.path().to_string();
        SettingsError::one(path, &pointer, invalid::reason(&pointer, &error.into_inner()))
    })?;
    json.end().map_err(|error| SettingsError::one(path, "", invalid::reason("", &error)))?;
    Ok(settings)
}
