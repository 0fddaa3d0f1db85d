//! Other reports: retries, denials, messages, changes of model, lost writes.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::control::SlashCommand;
use crate::message::AssistantError;
use crate::{AgentId, Extra, Num, RequestId, SessionId, ToolUseId, Uuid};

/// `api_retry`: a request to the API failed and will be retried.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(error))]
#[non_exhaustive]
pub struct ApiRetry {
    /// Which attempt failed, from 1.
    pub attempt: u64,
    /// The maximum number of attempts.
    pub max_retries: u64,
    /// How long the engine waits.
    pub retry_delay_ms: Num,
    /// HTTP status, if there was an answer.
    #[wire(nullable)]
    pub error_status: Option<u16>,
    /// The kind of failure.
    pub error: AssistantError,
    /// Set when the API did not answer at all.
    pub no_response: Option<NoResponse>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// The API did not answer at all.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct NoResponse {
    /// How long the engine waited.
    pub waited_ms: Num,
    /// How long it will wait next time.
    pub retry_wait_ms: Num,
    /// Unknown fields.
    pub extra: Extra,
}

/// `permission_denied`: a tool call was denied without asking the host.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PermissionDenied {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: ToolUseId,
    /// The subagent that made it.
    pub agent_id: Option<AgentId>,
    /// The kind of reason.
    pub decision_reason_type: Option<String>,
    /// The reason.
    pub decision_reason: Option<String>,
    /// The message for the model.
    pub message: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `informational`: a message for the user.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Informational {
    /// The message.
    pub content: String,
    /// `info`, `notice`, `suggestion` or `warning`.
    pub level: String,
    /// The call it is about.
    pub tool_use_id: Option<ToolUseId>,
    /// Whether the turn ends here.
    pub prevent_continuation: Option<bool>,
    /// A code for programs, such as `hook_callback_failed`.
    pub tag: Option<String>,
    /// The outcome of a prompt that a hook checked.
    pub prompt_submit_outcome: Option<Value>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `notification`: a transient message for the user interface.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Notification {
    /// Replaces an earlier one with the same key.
    pub key: String,
    /// The message.
    pub text: String,
    /// `low`, `medium`, `high` or `immediate`.
    pub priority: String,
    /// A colour.
    pub color: Option<String>,
    /// How long to show it.
    pub timeout_ms: Option<Num>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `model_fallback`: another model took over after repeated overload.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ModelFallback {
    /// Why.
    pub trigger: String,
    /// The model before.
    pub original_model: String,
    /// The model now.
    pub fallback_model: String,
    /// For people.
    pub content: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `model_refusal_fallback`: another model took over after a refusal.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ModelRefusalFallback {
    /// Always `refusal`.
    pub trigger: String,
    /// `retry`, `revert` or `sticky`.
    pub direction: String,
    /// `session` or `local`.
    pub scope: Option<String>,
    /// The model before.
    pub original_model: String,
    /// The model now.
    pub fallback_model: String,
    /// The refused request at the API.
    #[wire(nullable)]
    pub request_id: Option<String>,
    /// The refusal's category.
    pub api_refusal_category: Option<String>,
    /// The refusal as text.
    pub api_refusal_explanation: Option<String>,
    /// Retracted messages.
    pub retracted_message_uuids: Option<Vec<Uuid>>,
    /// The prompt that was refused.
    pub refused_user_message_uuid: Option<Uuid>,
    /// For people.
    pub content: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `model_refusal_no_fallback`: the model refused and no other takes over.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ModelRefusalNoFallback {
    /// The model.
    pub original_model: String,
    /// The refused request at the API.
    #[wire(nullable)]
    pub request_id: Option<String>,
    /// The refusal's category.
    pub api_refusal_category: Option<String>,
    /// The refusal as text.
    pub api_refusal_explanation: Option<String>,
    /// The prompt that was refused.
    pub refused_user_message_uuid: Option<Uuid>,
    /// For people.
    pub content: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `thinking_tokens`: an estimate of thinking whose text is withheld.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ThinkingTokens {
    /// So far.
    pub estimated_tokens: u64,
    /// Since the last one.
    pub estimated_tokens_delta: u64,
    /// The prompt being answered.
    pub user_message_uuid: Option<Uuid>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `commands_changed`: the slash commands changed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CommandsChanged {
    /// All of them.
    pub commands: Vec<SlashCommand>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `control_request_progress`: progress of a slow control request.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ControlRequestProgress {
    /// The request.
    pub request_id: RequestId,
    /// `started` or `api_retry`.
    pub status: String,
    /// Which attempt failed.
    pub attempt: Option<u64>,
    /// The maximum number of attempts.
    pub max_retries: Option<u64>,
    /// How long the engine waits.
    pub retry_delay_ms: Option<Num>,
    /// HTTP status, if there was an answer.
    pub error_status: Option<u16>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `files_persisted`: files were stored at the API.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct FilesPersisted {
    /// Stored.
    pub files: Vec<PersistedFile>,
    /// Not stored.
    pub failed: Vec<FailedFile>,
    /// When (RFC 3339).
    pub processed_at: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file that was stored.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PersistedFile {
    /// Its name here.
    pub filename: String,
    /// Its id there.
    pub file_id: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file that was not stored.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct FailedFile {
    /// Its name.
    pub filename: String,
    /// Why.
    pub error: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `local_command_output`: output of a local slash command.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct LocalCommandOutput {
    /// The output.
    pub content: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `plugin_install`: a plugin is being installed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PluginInstall {
    /// `started`, `installed`, `failed` or `completed`.
    pub status: String,
    /// The plugin.
    pub name: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `memory_recall`: memories were recalled.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct MemoryRecall {
    /// `select` or `synthesize`.
    pub mode: String,
    /// The memories.
    pub memories: Vec<Memory>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// A memory.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Memory {
    /// Its path.
    pub path: String,
    /// `personal`, `team` or `organization`.
    pub scope: String,
    /// What it says.
    pub content: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `elicitation_complete`: a question of an MCP server was answered elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ElicitationComplete {
    /// The server.
    pub mcp_server_name: String,
    /// The question.
    pub elicitation_id: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `session_writes_lost`: the disk is full.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SessionWritesLost {
    /// `ENOSPC` or `EDQUOT`.
    pub error_code: String,
    /// `transcript`, `global_config`.
    pub lost: Vec<String>,
    /// The sessions concerned.
    pub transcript_session_ids: Option<Vec<SessionId>>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `worker_shutting_down`: a remote worker is about to end.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct WorkerShuttingDown {
    /// Why.
    pub reason: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `ui_invalidate`: a view should be drawn again.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct UiInvalidate {
    /// What changed.
    pub event: Value,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `mirror_error`: an SDK could not store its copy of the transcript.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct MirrorError {
    /// Why.
    pub error: String,
    /// Which file.
    pub key: MirrorKey,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// Names a session file in an SDK's store.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct MirrorKey {
    /// The project's folder.
    pub project_key: String,
    /// The session.
    pub session_id: SessionId,
    /// A subagent's file below it.
    pub subpath: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}
