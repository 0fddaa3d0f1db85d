//! `init`, `status`, `compact_boundary` and the session's state.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::permission::PermissionMode;
use crate::{Extra, Num, SessionId, Uuid};

/// `init`: the start of every turn, after `UserPromptSubmit` hooks and after the MCP servers connected.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Init {
    /// The working directory.
    pub cwd: String,
    /// The conversation.
    pub session_id: SessionId,
    /// The tools on offer.
    pub tools: Vec<String>,
    /// The MCP servers and their states.
    pub mcp_servers: Vec<InitMcpServer>,
    /// The model.
    pub model: String,
    /// The permission mode.
    #[wire(name = "permissionMode")]
    pub permission_mode: PermissionMode,
    /// The slash commands on offer.
    pub slash_commands: Vec<String>,
    /// Of them, those that only make sense at a terminal.
    pub terminal_slash_commands: Option<Vec<String>>,
    /// Where the key comes from: `ANTHROPIC_API_KEY`, `none`, ….
    #[wire(name = "apiKeySource")]
    pub api_key_source: Option<String>,
    /// The engine's version. The Python SDK warns when it is missing.
    pub claude_code_version: Option<String>,
    /// The version of `ostler`, which is the engine then; other engines do not have this field.
    pub ostler_version: Option<String>,
    /// The output style.
    pub output_style: Option<String>,
    /// The subagents on offer.
    pub agents: Option<Vec<String>>,
    /// The skills on offer.
    pub skills: Option<Vec<String>>,
    /// The plugins in use.
    pub plugins: Option<Vec<PluginInfo>>,
    /// Plugins that could not be used.
    pub plugin_errors: Option<Vec<PluginError>>,
    /// This frame.
    pub uuid: Uuid,
    /// Beta features in use.
    pub betas: Option<Vec<String>>,
    /// Whether fast mode is on.
    pub fast_mode_state: Option<String>,
    /// Why fast mode is off.
    pub fast_mode_disabled_reason: Option<String>,
    /// What this engine can do beyond the basics.
    pub capabilities: Option<Vec<String>>,
    /// Where the process was started.
    pub original_cwd: Option<String>,
    /// Further directories the agent may use.
    pub additional_directories: Option<Vec<String>>,
    /// Where memories live.
    pub memory_paths: Option<Value>,
    /// A socket for other sessions to talk to this one.
    pub messaging_socket_path: Option<String>,
    /// `focus` or `default`.
    pub view_mode: Option<String>,
    /// The effort level.
    pub effort: Option<String>,
    /// Whether the effort may change per turn.
    pub per_turn_effort_active: Option<bool>,
    /// Whether a higher effort can be asked for in the prompt.
    pub ultrathink_available: Option<bool>,
    /// Whether typing the word does so.
    pub ultrathink_typed_raises: Option<bool>,
    /// Whether telemetry is off.
    pub analytics_disabled: Option<bool>,
    /// Whether feedback is off.
    pub product_feedback_disabled: Option<bool>,
    /// The prompts the turn answers.
    pub user_message_uuids: Option<Vec<Uuid>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An MCP server in `init`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct InitMcpServer {
    /// Its name.
    pub name: String,
    /// `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
    pub status: String,
    /// Where it was configured.
    pub source: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A plugin in use.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PluginInfo {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// Where it came from.
    pub source: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A plugin that could not be used.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PluginError {
    /// Its name.
    pub plugin: String,
    /// The kind of error.
    pub r#type: String,
    /// For people.
    pub message: String,
    /// The file at fault.
    pub path: Option<String>,
    /// Set when an administrator locked it.
    pub managed_lock: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `status`: the permission mode changed, or compaction or a request is in progress.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Status {
    /// `compacting`, `requesting`, or `null` at the end.
    #[wire(nullable)]
    pub status: Option<String>,
    /// The mode now.
    #[wire(name = "permissionMode")]
    pub permission_mode: Option<PermissionMode>,
    /// How compaction ended: `success` or `failed`.
    pub compact_result: Option<String>,
    /// Why it failed.
    pub compact_error: Option<String>,
    /// The prompts being answered.
    pub user_message_uuids: Option<Vec<Uuid>>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `compact_boundary`: everything before is now only a summary.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CompactBoundary {
    /// What compaction did.
    pub compact_metadata: CompactMetadata,
    /// The last line before the boundary.
    pub logical_parent_uuid: Option<Uuid>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CompactMetadata {
    /// `manual` or `auto`.
    pub trigger: String,
    /// Tokens before.
    pub pre_tokens: u64,
    /// Tokens after.
    pub post_tokens: Option<u64>,
    /// Tokens that compactions have dropped so far.
    pub cumulative_dropped_tokens: Option<u64>,
    /// How long it took.
    pub duration_ms: Option<Num>,
    /// The range of messages that was kept verbatim.
    pub preserved_segment: Option<PreservedSegment>,
    /// The messages that were kept verbatim.
    pub preserved_messages: Option<PreservedMessages>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A range of messages that compaction kept.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PreservedSegment {
    /// The first.
    pub head_uuid: Uuid,
    /// Its new parent.
    pub anchor_uuid: Uuid,
    /// The last.
    pub tail_uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// Messages that compaction kept.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PreservedMessages {
    /// Their new parent.
    pub anchor_uuid: Uuid,
    /// The messages.
    pub uuids: Vec<Uuid>,
    /// All messages that count as kept.
    pub all_uuids: Option<Vec<Uuid>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `session_state_changed`: sent on request (`CLAUDE_CODE_SDK_READS_SESSION_STATE=1`), and what newer SDKs wait for
/// before they close stdin.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(state))]
#[non_exhaustive]
pub struct SessionStateChanged {
    /// The state now.
    pub state: SessionState,
    /// True when the SDK should not pass the frame on.
    pub sdk_host_only: Option<bool>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum SessionState {
    /// Idle, also in the background.
    Idle,
    /// Working.
    Running,
    /// Waiting for an answer of the host.
    RequiresAction,
    /// A state this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// `session_title_changed`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SessionTitleChanged {
    /// The title.
    pub title: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}
