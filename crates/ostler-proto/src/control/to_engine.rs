//! Requests of a host to an engine.

use std::collections::BTreeMap;
use std::fmt;

use ostler_proto_derive::Wire;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{McpMessage, PluginConfig};
use crate::agent::AgentDefinition;
use crate::hook::HookMatcher;
use crate::mcp::{McpServerConfig, ToolPolicy};
use crate::permission::PermissionMode;
use crate::{Extra, Num, SessionId, TaskId, ToolUseId, UnknownObject, Uuid};

/// A request to the engine. All but `initialize` may be asked at any time, also while a turn runs.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "subtype", tree)]
#[non_exhaustive]
pub enum AskEngine {
    /// Introduce the host: hooks, in-process servers, agents, prompts.
    Initialize(Box<Initialize>),
    /// Stop the running turn.
    Interrupt(Interrupt),
    /// Change the permission mode.
    SetPermissionMode(SetPermissionMode),
    /// Change the model.
    SetModel(SetModel),
    /// Change the thinking budget.
    SetMaxThinkingTokens(SetMaxThinkingTokens),
    /// Ask for the state of the MCP servers.
    McpStatus(McpStatus),
    /// Reconnect a server.
    McpReconnect(McpReconnect),
    /// Switch a server on or off.
    McpToggle(McpToggle),
    /// Begin to sign in to a server.
    McpAuthenticate(McpAuthenticate),
    /// Finish signing in, with the address that the browser was led to.
    McpOauthCallbackUrl(McpOauthCallbackUrl),
    /// Sign out of a server.
    McpClearAuth(McpClearAuth),
    /// Replace the servers that were added while running.
    McpSetServers(McpSetServers),
    /// A message of an in-process server.
    McpMessage(McpMessage),
    /// Restore files to their state before a prompt.
    RewindFiles(RewindFiles),
    /// End a background task.
    StopTask(StopTask),
    /// Change settings as if given on the command line.
    ApplyFlagSettings(ApplyFlagSettings),
    /// Bind a parked process to a session.
    ClaimSession(Box<ClaimSession>),
    /// Ask what fills the context window.
    GetContextUsage(GetContextUsage),
    /// Ask for usage and remaining limits.
    GetUsage(GetUsage),
    /// Reload the skills.
    ReloadSkills(ReloadSkills),
    /// Reload the plugins.
    ReloadPlugins(ReloadPlugins),
    /// Reload the output styles.
    ReloadOutputStyles(ReloadOutputStyles),
    /// Read a file with the engine's permissions.
    ReadFile(ReadFile),
    /// Tell the engine that the host has read a file.
    SeedReadState(SeedReadState),
    /// Move running tools to the background.
    BackgroundTasks(BackgroundTasks),
    /// Use another permission mode for one server's tools.
    SetMcpPermissionModeOverride(SetMcpPermissionModeOverride),
    /// Write settings.
    UpdateSettings(UpdateSettings),
    /// Withdraw a queued prompt.
    CancelAsyncMessage(CancelAsyncMessage),
    /// Ask for the effective settings.
    GetSettings(GetSettings),
    /// Ask for the session's cost as text.
    GetSessionCost(GetSessionCost),
    /// List the models.
    ListModels(ListModels),
    /// Ask for the engine's version.
    GetBinaryVersion(GetBinaryVersion),
    /// List the active permission rules.
    ListPermissionRules(ListPermissionRules),
    /// List the hooks.
    GetHooksListing(GetHooksListing),
    /// Give the session a title.
    RenameSession(RenameSession),
    /// Add another folder to the project.
    RegisterRepoRoot(RegisterRepoRoot),
    /// Say whether a client is connected.
    SetHasSubscribers(SetHasSubscribers),
    /// Give the session a colour.
    SetColor(SetColor),
    /// End the session.
    EndSession(EndSession),
    /// Complete a file name.
    FileSuggestions(FileSuggestions),
    /// The end of a task's output.
    GetTaskOutput(GetTaskOutput),
    /// Read a resource of a server.
    McpReadResource(McpReadResource),
    /// Call a tool of a server without the model.
    McpCall(McpCall),
    /// A request this version does not know. Answer it with [`super::UNSUPPORTED_REQUEST`].
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `initialize`: the first thing a host sends. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct Initialize {
    /// Callback hooks by event name.
    pub hooks: Option<BTreeMap<String, Vec<HookMatcher>>>,
    /// Names of in-process MCP servers.
    pub sdk_mcp_servers: Option<Vec<String>>,
    /// Their settings.
    pub sdk_mcp_server_configs: Option<BTreeMap<String, SdkMcpServerConfig>>,
    /// Their answers to a handshake, so that it can be skipped.
    pub sdk_mcp_server_manifests: Option<BTreeMap<String, SdkMcpServerManifest>>,
    /// `host_per_send` when the manifests are fresh.
    pub sdk_mcp_server_manifests_origin: Option<String>,
    /// The schema the answer must have.
    pub json_schema: Option<Value>,
    /// The host's system prompt. An empty one counts; absent means the engine's own.
    pub system_prompt: Option<SystemPrompt>,
    /// Added to the engine's own system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether the system prompt stays unchanged for the whole session.
    pub system_prompt_snapshot: Option<bool>,
    /// Whether to leave out what changes from session to session.
    pub exclude_dynamic_sections: Option<bool>,
    /// Instructions for plan mode instead of the engine's own.
    pub plan_mode_instructions: Option<String>,
    /// Other names for tools.
    pub tool_aliases: Option<BTreeMap<String, String>>,
    /// Subagents.
    pub agents: Option<BTreeMap<String, AgentDefinition>>,
    /// The session's title.
    pub title: Option<String>,
    /// Available skills: names, or `all`.
    pub skills: Option<Value>,
    /// Whether to suggest a next prompt after each turn.
    pub prompt_suggestions: Option<bool>,
    /// Whether agents summarise their progress.
    pub agent_progress_summaries: Option<bool>,
    /// Whether the text of subagents is sent too.
    pub forward_subagent_text: Option<bool>,
    /// Dialogs the host can show.
    pub supported_dialog_kinds: Option<Vec<String>>,
    /// Whether the host can stop single tasks.
    pub per_task_stop_affordance: Option<bool>,
    /// Plugins.
    pub plugins: Option<Vec<PluginConfig>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A host's own system prompt: a string in the old level, a list of strings in the new one.
///
/// See [`crate::quirks::system_prompt_text`] for one string either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemPrompt {
    /// One string.
    Text(String),
    /// Parts, each of them a block of the API's `system`.
    Parts(Vec<String>),
}

impl Serialize for SystemPrompt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => parts.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SystemPrompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SystemPromptVisitor)
    }
}

struct SystemPromptVisitor;

impl<'de> Visitor<'de> for SystemPromptVisitor {
    type Value = SystemPrompt;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E>(self, text: &str) -> Result<SystemPrompt, E> {
        Ok(SystemPrompt::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SystemPrompt, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Ok(SystemPrompt::Parts(parts))
    }
}

/// Settings of an in-process server.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SdkMcpServerConfig {
    /// How long one call may take, in milliseconds.
    pub timeout: Option<Num>,
    /// Policies for single tools.
    pub tools: Option<Vec<ToolPolicy>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The answers of an in-process server to a handshake.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SdkMcpServerManifest {
    /// Its answer to `initialize`.
    pub initialize_result: Value,
    /// Its answer to `tools/list`.
    pub tools_list_result: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `interrupt`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct Interrupt {
    /// Whether to drop queued prompts too.
    pub cancel_queued: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `set_permission_mode`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SetPermissionMode {
    /// The mode.
    pub mode: PermissionMode,
    /// Unknown fields.
    pub extra: Extra,
}

/// `set_model`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SetModel {
    /// The model; absent, `null` or `default` for the default one.
    pub model: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `set_max_thinking_tokens`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SetMaxThinkingTokens {
    /// The budget; `null` for none.
    #[wire(nullable)]
    pub max_thinking_tokens: Option<u64>,
    /// `summarized`, `omitted` or `highlights`.
    pub thinking_display: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_status`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct McpStatus {
    /// Whether to check the servers again instead of answering from memory.
    #[wire(name = "liveReply")]
    pub live_reply: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_reconnect`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct McpReconnect {
    /// The server.
    pub server_name: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_toggle`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct McpToggle {
    /// The server.
    pub server_name: String,
    /// On or off.
    pub enabled: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_authenticate`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct McpAuthenticate {
    /// The server.
    pub server_name: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_oauth_callback_url`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct McpOauthCallbackUrl {
    /// The server.
    pub server_name: String,
    /// The address that the browser was led to, with the code in it.
    pub callback_url: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_clear_auth`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct McpClearAuth {
    /// The server.
    pub server_name: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_set_servers`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct McpSetServers {
    /// The complete new list of servers.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `rewind_files`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct RewindFiles {
    /// The prompt before which files are put back.
    pub user_message_id: Uuid,
    /// Only report what would happen.
    pub dry_run: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `stop_task`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct StopTask {
    /// The task.
    pub task_id: TaskId,
    /// Unknown fields.
    pub extra: Extra,
}

/// `apply_flag_settings`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ApplyFlagSettings {
    /// The settings.
    pub settings: Value,
    /// Unknown fields.
    pub extra: Extra,
}

/// `claim_session`: binds a process started with `--await-claim`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ClaimSession {
    /// The working directory.
    pub cwd: String,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// In-process MCP servers.
    pub sdk_mcp_servers: Option<Value>,
    /// Whether the answer includes that to `initialize`.
    pub include_initialize: Option<bool>,
    /// The session to use.
    pub session_id: Option<SessionId>,
    /// The mode.
    pub permission_mode: Option<PermissionMode>,
    /// Further working directories.
    pub additional_directories: Option<Vec<String>>,
    /// Variables for what the session starts.
    pub env: Option<BTreeMap<String, String>>,
    /// The session's title.
    pub title: Option<String>,
    /// Subagents by name.
    pub agents: Option<BTreeMap<String, AgentDefinition>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `get_context_usage`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct GetContextUsage {
    /// `summary` or `full`.
    pub detail: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `get_usage`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct GetUsage {
    /// Whether to leave out the expensive part.
    pub skip_behaviors: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `reload_skills`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ReloadSkills {
    /// Unknown fields.
    pub extra: Extra,
}

/// `reload_plugins`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ReloadPlugins {
    /// Hold back if it would invalidate the prompt cache.
    pub hold_on_cache_impact: Option<bool>,
    /// Plugins to add.
    pub add_plugins: Option<Vec<PluginConfig>>,
    /// Refuse while a turn runs (`error_code` `reload_plugins_busy`).
    pub refuse_if_busy: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `reload_output_styles`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ReloadOutputStyles {
    /// Unknown fields.
    pub extra: Extra,
}

/// `read_file`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ReadFile {
    /// The file.
    pub path: String,
    /// How much of it.
    pub max_bytes: Option<u64>,
    /// `utf-8` or `base64`.
    pub encoding: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `seed_read_state`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SeedReadState {
    /// The file.
    pub path: String,
    /// Its time of change when the host read it (Unix milliseconds).
    pub mtime: Num,
    /// Unknown fields.
    pub extra: Extra,
}

/// `background_tasks`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct BackgroundTasks {
    /// One call; all running ones when absent.
    pub tool_use_id: Option<ToolUseId>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `set_mcp_permission_mode_override`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SetMcpPermissionModeOverride {
    /// The server.
    pub server_name: String,
    /// `default`, `auto`, or `null` for none.
    #[wire(nullable)]
    pub mode: Option<PermissionMode>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `update_settings`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct UpdateSettings {
    /// `localSettings` or `userSettings`.
    pub source: String,
    /// What to change.
    pub settings: Value,
    /// Unknown fields.
    pub extra: Extra,
}

/// `cancel_async_message`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct CancelAsyncMessage {
    /// The prompt.
    pub message_uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `get_settings`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct GetSettings {
    /// Unknown fields.
    pub extra: Extra,
}

/// `get_session_cost`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct GetSessionCost {
    /// Unknown fields.
    pub extra: Extra,
}

/// `list_models`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ListModels {
    /// Unknown fields.
    pub extra: Extra,
}

/// `get_binary_version`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct GetBinaryVersion {
    /// Unknown fields.
    pub extra: Extra,
}

/// `list_permission_rules`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct ListPermissionRules {
    /// Unknown fields.
    pub extra: Extra,
}

/// `get_hooks_listing`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct GetHooksListing {
    /// Unknown fields.
    pub extra: Extra,
}

/// `rename_session`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct RenameSession {
    /// The title.
    pub title: String,
    /// `remote` or `host`.
    pub source: Option<String>,
    /// The session, if not this one.
    pub session_id: Option<SessionId>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `register_repo_root`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct RegisterRepoRoot {
    /// The folder.
    pub directory: String,
    /// Whether to read its CLAUDE.md.
    pub reload_claude_md: Option<bool>,
    /// Whether to read its plugins.
    pub reload_plugins: Option<bool>,
    /// Whether to read its skills.
    pub reload_skills: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `set_has_subscribers`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SetHasSubscribers {
    /// Whether a client is connected; `null` if unknown.
    #[wire(nullable)]
    pub has_subscribers: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `set_color`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SetColor {
    /// The colour.
    pub color: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `end_session`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct EndSession {
    /// Unknown fields.
    pub extra: Extra,
}

/// `file_suggestions`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct FileSuggestions {
    /// The typed text.
    pub query: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `get_task_output`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct GetTaskOutput {
    /// The task.
    pub task_id: TaskId,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_read_resource`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct McpReadResource {
    /// The server.
    pub server_name: String,
    /// The resource (`ui://…`).
    pub uri: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mcp_call`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct McpCall {
    /// The tool, `mcp__<server>__<tool>`.
    pub tool: String,
    /// Its arguments.
    pub arguments: Option<Value>,
    /// When the call expires (RFC 3339).
    pub expires_at: Option<String>,
    /// How long it may take.
    pub timeout_ms: Option<Num>,
    /// Whether the model never sees the result.
    pub result_not_for_model: Option<bool>,
    /// Whether permissions are checked.
    pub check_permissions: Option<bool>,
    /// Input files of the tool.
    pub input_files: Option<Vec<Value>>,
    /// Output files of the tool.
    pub output_files: Option<Vec<Value>>,
    /// Unknown fields.
    pub extra: Extra,
}
