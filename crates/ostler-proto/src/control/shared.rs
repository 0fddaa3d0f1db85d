//! Types that several requests and answers share.

use ostler_proto_derive::Wire;

use crate::Extra;

/// A slash command.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What to write after it. Absent from some engines.
    pub argument_hint: Option<String>,
    /// Other names.
    pub aliases: Option<Vec<String>>,
    /// Whether it comes with the engine.
    pub builtin: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A model on offer.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelInfo {
    /// The value to select it with.
    pub value: String,
    /// Its full name.
    pub resolved_model: Option<String>,
    /// Its name for people.
    pub display_name: String,
    /// What it is good for.
    pub description: String,
    /// Whether effort can be set.
    pub supports_effort: Option<bool>,
    /// The levels.
    pub supported_effort_levels: Option<Vec<String>>,
    /// Whether it decides by itself how long to think.
    pub supports_adaptive_thinking: Option<bool>,
    /// Whether thinking can be disabled.
    pub supports_thinking_off: Option<bool>,
    /// Whether it has a fast mode.
    pub supports_fast_mode: Option<bool>,
    /// Whether it can run in auto mode.
    pub supports_auto_mode: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The account.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct AccountInfo {
    /// The user.
    pub email: Option<String>,
    /// The organisation.
    pub organization: Option<String>,
    /// The plan.
    pub subscription_type: Option<String>,
    /// Where the token comes from.
    pub token_source: Option<String>,
    /// Where the key comes from.
    pub api_key_source: Option<String>,
    /// Who serves the API: `firstParty`, `bedrock`, ….
    pub api_provider: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A subagent on offer.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its own model, if set.
    pub model: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A plugin to use.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PluginConfig {
    /// Always `local`.
    pub r#type: String,
    /// Its path.
    pub path: String,
    /// Whether to ignore its MCP servers.
    pub skip_mcp_discovery: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An error in a settings file.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SettingsParseError {
    /// The file.
    pub file: Option<String>,
    /// Where in it.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// Unknown fields.
    pub extra: Extra,
}
