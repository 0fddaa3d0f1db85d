//! Payloads of successful answers.

use std::collections::BTreeMap;

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::{AccountInfo, AgentInfo, ModelInfo, SettingsParseError, SlashCommand};
use crate::api::{ModelUsage, Usage};
use crate::mcp::McpServerStatus;
use crate::message::system::PluginInfo;
use crate::permission::{PermissionBehavior, PermissionMode};
use crate::{Extra, Num, SessionId, UnknownObject, Uuid};

/// Answer to `initialize`. `{}` is enough for hosts.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct InitializeReply {
    /// Slash commands.
    pub commands: Option<Vec<SlashCommand>>,
    /// Subagents.
    pub agents: Option<Vec<AgentInfo>>,
    /// The output style in use.
    pub output_style: Option<String>,
    /// Available output styles.
    pub available_output_styles: Option<Vec<String>>,
    /// Models.
    pub models: Option<Vec<ModelInfo>>,
    /// The account.
    pub account: Option<AccountInfo>,
    /// The engine's process.
    pub pid: Option<u64>,
    /// The engine's version.
    pub claude_code_version: Option<String>,
    /// The version of `ostler`, which is the engine then; other engines do not have this field.
    pub ostler_version: Option<String>,
    /// The permission mode now.
    pub current_permission_mode: Option<PermissionMode>,
    /// Whether hooks with `onFailure: block` are supported; new SDKs refuse to continue without it.
    pub hook_on_failure_supported: Option<bool>,
    /// Whether the hooks were registered.
    pub hooks_applied: Option<bool>,
    /// Whether the plugins were loaded.
    pub plugins_applied: Option<bool>,
    /// The state of the servers' manifests: `parked`, `already_connected`, ….
    pub sdk_mcp_manifests_parked: Option<BTreeMap<String, String>>,
    /// The state of the session.
    pub session_state: Option<String>,
    /// What this engine can do beyond the basics.
    pub capabilities: Option<Value>,
    /// The folder of the user's own output styles.
    pub user_output_styles_dir: Option<String>,
    /// Whether telemetry is off.
    pub analytics_disabled: Option<bool>,
    /// Whether fast mode is on.
    pub fast_mode_state: Option<String>,
    /// Why fast mode is off.
    pub fast_mode_disabled_reason: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `interrupt`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct InterruptReply {
    /// Prompts that still wait.
    pub still_queued: Option<Vec<Uuid>>,
    /// Prompts that were dropped.
    pub cancelled: Option<Vec<Uuid>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `set_permission_mode`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SetPermissionModeReply {
    /// The mode now.
    pub mode: Option<PermissionMode>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `set_model`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SetModelReply {
    /// The model now.
    pub model: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `mcp_status`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpStatusReply {
    /// All servers.
    pub mcp_servers: Vec<McpServerStatus>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `mcp_set_servers`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct McpSetServersReply {
    /// New ones.
    pub added: Vec<String>,
    /// Removed ones.
    pub removed: Vec<String>,
    /// Failed ones, with the reason.
    pub errors: BTreeMap<String, String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `mcp_message`; a bare acknowledgement towards a host.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct McpMessageReply {
    /// The server's JSON-RPC answer.
    pub mcp_response: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `rewind_files`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct RewindFilesReply {
    /// Whether it is possible, or was done.
    pub can_rewind: bool,
    /// Why not.
    pub error: Option<String>,
    /// The files concerned; only for a dry run.
    pub files_changed: Option<Vec<String>>,
    /// Lines that would be restored.
    pub insertions: Option<u64>,
    /// Lines that would be removed.
    pub deletions: Option<u64>,
    /// Links that were skipped.
    pub skipped_links: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `claim_session`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ClaimSessionReply {
    /// `ok`.
    pub status: String,
    /// The working directory.
    pub cwd: Option<String>,
    /// The session.
    pub session_id: Option<SessionId>,
    /// How long the process waited.
    pub parked_ms: Option<Num>,
    /// Whether the in-process servers are connected.
    pub sdk_mcp_settled: Option<bool>,
    /// The answer to `initialize`, if it was asked for.
    pub initialize: Option<InitializeReply>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `get_context_usage`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextUsageReply {
    /// What fills the window.
    pub categories: Vec<ContextCategory>,
    /// Tokens in use.
    pub total_tokens: u64,
    /// Tokens that can be used before compaction.
    pub max_tokens: u64,
    /// The whole window.
    pub raw_max_tokens: u64,
    /// How full the window is, in percent.
    pub percentage: Num,
    /// A picture of it for terminals.
    pub grid_rows: Option<Value>,
    /// The model.
    pub model: String,
    /// Memory files.
    pub memory_files: Option<Vec<Value>>,
    /// MCP tools.
    pub mcp_tools: Option<Vec<Value>>,
    /// Instructions of MCP servers.
    pub mcp_instructions: Option<Vec<Value>>,
    /// Built-in tools that are loaded on demand.
    pub deferred_builtin_tools: Option<Vec<Value>>,
    /// Built-in tools.
    pub system_tools: Option<Vec<Value>>,
    /// Parts of the system prompt.
    pub system_prompt_sections: Option<Vec<Value>>,
    /// Subagents.
    pub agents: Option<Vec<Value>>,
    /// Slash commands.
    pub slash_commands: Option<Value>,
    /// Skills.
    pub skills: Option<Value>,
    /// The number of tokens at which the context is compacted.
    pub auto_compact_threshold: Option<Num>,
    /// The setting that enables compaction.
    pub autocompact_source: Option<String>,
    /// Whether automatic compaction is enabled.
    pub is_auto_compact_enabled: Option<bool>,
    /// What the messages consist of.
    pub message_breakdown: Option<Value>,
    /// The API's last count.
    #[wire(nullable)]
    pub api_usage: Option<Usage>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A part of the context window.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextCategory {
    /// For programs.
    pub id: Option<String>,
    /// For people.
    pub name: String,
    /// How much.
    pub tokens: u64,
    /// A colour.
    pub color: Option<String>,
    /// Whether it is loaded only on demand.
    pub is_deferred: Option<bool>,
    /// `used`, `free`, `buffer` or `deferred`.
    pub kind: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `get_usage`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct UsageReply {
    /// This session.
    pub session: SessionUsage,
    /// The plan.
    #[wire(nullable)]
    pub subscription_type: Option<String>,
    /// Whether limits are known.
    pub rate_limits_available: Option<bool>,
    /// The limits.
    #[wire(nullable)]
    pub rate_limits: Option<Value>,
    /// Token usage by purpose, over a day and a week.
    #[wire(nullable)]
    pub behaviors: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a session used.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SessionUsage {
    /// Dollars.
    pub total_cost_usd: Num,
    /// Time at the API.
    pub total_api_duration_ms: Num,
    /// Time in all.
    pub total_duration_ms: Num,
    /// Lines added to files.
    pub total_lines_added: u64,
    /// Lines removed from files.
    pub total_lines_removed: u64,
    /// Per model.
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `reload_skills`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReloadSkillsReply {
    /// All skills.
    pub skills: Vec<SlashCommand>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `reload_plugins`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReloadPluginsReply {
    /// All slash commands.
    pub commands: Vec<SlashCommand>,
    /// All subagents.
    pub agents: Vec<AgentInfo>,
    /// All plugins.
    pub plugins: Vec<PluginInfo>,
    /// All servers.
    #[wire(name = "mcpServers")]
    pub mcp_servers: Vec<McpServerStatus>,
    /// The number of errors.
    pub error_count: u64,
    /// Whether the reload was postponed.
    pub held: Option<bool>,
    /// What it would have changed.
    pub cache_impact: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `reload_output_styles`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReloadOutputStylesReply {
    /// All output styles.
    pub available_output_styles: Vec<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `read_file`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadFileReply {
    /// What is in it.
    pub contents: String,
    /// Its real path.
    pub abs_path: String,
    /// What was asked for.
    #[wire(name = "requested_path")]
    pub requested_path: Option<String>,
    /// Whether it is truncated.
    pub truncated: Option<bool>,
    /// `base64` if the contents are encoded so.
    pub encoding: Option<String>,
    /// Whether bytes were replaced.
    pub lossy: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `set_mcp_permission_mode_override`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SetMcpPermissionModeOverrideReply {
    /// A warning.
    pub warning: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `cancel_async_message`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CancelAsyncMessageReply {
    /// Whether the prompt was still queued.
    pub cancelled: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `get_settings`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct GetSettingsReply {
    /// The effective settings.
    pub effective: Value,
    /// The sources of the settings.
    pub sources: Vec<Value>,
    /// The applied values: model, effort, ….
    pub applied: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `get_session_cost`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct GetSessionCostReply {
    /// As text.
    pub text: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `list_models`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ListModelsReply {
    /// All models.
    pub models: Vec<ModelInfo>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `get_binary_version`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetBinaryVersionReply {
    /// The version.
    pub version: String,
    /// When it was built.
    pub build_time: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `list_permission_rules`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ListPermissionRulesReply {
    /// The active rules.
    pub state: PermissionRulesState,
    /// Unknown fields.
    pub extra: Extra,
}

/// The active permission rules.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionRulesState {
    /// The rules.
    pub rules: Vec<PermissionRuleEntry>,
    /// The directories that may be used.
    pub workspace_directories: Vec<WorkspaceDirectory>,
    /// Where the process was started.
    pub original_cwd: String,
    /// Whether only an administrator's rules count.
    pub managed_only: bool,
    /// Errors in settings files.
    pub errors: Option<Vec<SettingsParseError>>,
    /// Whether rules are hidden from the host.
    pub withheld: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A permission rule and its source.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(behavior, rule))]
#[non_exhaustive]
pub struct PermissionRuleEntry {
    /// What it does.
    pub behavior: PermissionBehavior,
    /// Its source.
    pub source: String,
    /// Its text, such as `Bash(git:*)`.
    pub rule: String,
    /// As text.
    pub description: Option<Value>,
    /// `persistent`, `session` or `readonly`.
    pub editability: String,
    /// Whether another rule overrides it.
    pub not_in_effect: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A directory that may be used.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct WorkspaceDirectory {
    /// The directory.
    pub path: String,
    /// Who allowed it.
    pub source: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `get_hooks_listing`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct HooksListingReply {
    /// Events that have hooks.
    pub events: Vec<Value>,
    /// The hooks.
    pub hooks: Vec<Value>,
    /// All events.
    pub event_catalog: Vec<HookEventInfo>,
    /// The administrator's policy for hooks.
    pub policy: Option<Value>,
    /// Set in safe mode.
    pub safe_mode: Option<Value>,
    /// Set in bare mode.
    pub bare_mode: Option<Value>,
    /// Errors in settings files.
    pub errors: Option<Vec<SettingsParseError>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A hook event with its description.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct HookEventInfo {
    /// Its name.
    pub name: String,
    /// When it happens.
    pub summary: String,
    /// Whether hooks can be limited to tools.
    pub supports_matcher: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `mcp_authenticate`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpAuthenticateReply {
    /// The address that the user opens in a browser.
    pub auth_url: Option<String>,
    /// Whether the user has to do something at all.
    pub requires_user_action: Option<bool>,
    /// Whether the engine waits for the browser, or for `mcp_oauth_callback_url`.
    pub callback_expected: Option<bool>,
    /// `localhost` if the browser is led back to the engine's machine.
    pub redirect_scheme: Option<String>,
    /// The value that the browser returns.
    pub state: Option<String>,
    /// The port of the engine's machine to which the browser is led back.
    pub callback_port: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `file_suggestions`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct FileSuggestionsReply {
    /// Matching files.
    pub suggestions: Vec<Value>,
    /// The working directory.
    pub cwd: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `get_task_output`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct GetTaskOutputReply {
    /// The end of the output.
    pub output: String,
    /// Its total size.
    pub total_bytes: u64,
    /// Whether it is truncated.
    pub truncated: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `mcp_read_resource`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct McpReadResourceReply {
    /// What is in it.
    pub contents: Vec<ResourceContents>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Contents of a resource.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceContents {
    /// Its address.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// As text.
    pub text: Option<String>,
    /// As base 64.
    pub blob: Option<String>,
    /// The server's own metadata.
    #[wire(name = "_meta")]
    pub meta: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `elicitation`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ElicitationReply {
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// The user's answer.
    pub content: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Answer to `request_user_dialog`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "behavior")]
#[non_exhaustive]
pub enum UserDialogReply {
    /// The user completed it.
    Completed(DialogCompleted),
    /// The user cancelled it.
    Cancelled(super::Ack),
    /// An answer this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `completed`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct DialogCompleted {
    /// The result of the dialog.
    pub result: Value,
    /// Unknown fields.
    pub extra: Extra,
}
