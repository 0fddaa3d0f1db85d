//! The remaining message types.

use std::collections::BTreeMap;

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{AgentId, Extra, Num, SessionId, TaskId, ToolUseId, Uuid};

/// `tool_progress`: a tool (or a hook before it) is still running.
///
/// May come before the `content_block_stop` of the call it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ToolProgress {
    /// A synthetic id; use [`crate::quirks::progress_call`] to find the call.
    pub tool_use_id: ToolUseId,
    /// The tool.
    pub tool_name: String,
    /// The call that is running.
    #[wire(nullable)]
    pub parent_tool_use_id: Option<ToolUseId>,
    /// For how long.
    pub elapsed_time_seconds: Num,
    /// The task, if the tool runs as one.
    pub task_id: Option<TaskId>,
    /// True for a periodic heartbeat.
    pub heartbeat: Option<bool>,
    /// The subagent's type, when the tool is one.
    pub subagent_type: Option<String>,
    /// Set while a subagent waits to retry the API.
    pub subagent_retry: Option<SubagentRetry>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// A subagent waits to retry the API.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SubagentRetry {
    /// The subagent.
    pub agent_id: AgentId,
    /// Which attempt failed.
    pub attempt: u64,
    /// The maximum number of attempts.
    pub max_retries: u64,
    /// How long it waits.
    pub retry_delay_ms: Num,
    /// HTTP status, if there was an answer.
    #[wire(nullable)]
    pub error_status: Option<u16>,
    /// The kind of failure.
    pub error_category: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `auth_status`: a login is in progress.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct AuthStatus {
    /// Whether it is still in progress.
    #[wire(name = "isAuthenticating")]
    pub is_authenticating: bool,
    /// Stdout.
    pub output: Vec<String>,
    /// How it failed.
    pub error: Option<String>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `tool_use_summary`: several tool calls in one sentence.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ToolUseSummary {
    /// The sentence.
    pub summary: String,
    /// The calls; see [`crate::quirks::summarised_calls`] for when it is missing.
    pub preceding_tool_use_ids: Option<Vec<ToolUseId>>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `rate_limit_event`: the state of a subscription's limit changed.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(rate_limit_info))]
#[non_exhaustive]
pub struct RateLimitEvent {
    /// The limit.
    pub rate_limit_info: RateLimitInfo,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// State of a subscription's limit.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(status))]
#[non_exhaustive]
pub struct RateLimitInfo {
    /// Whether requests still pass.
    pub status: RateLimitStatus,
    /// When it resets (Unix seconds).
    pub resets_at: Option<Num>,
    /// Which limit.
    pub rate_limit_type: Option<String>,
    /// How much of it is used.
    pub utilization: Option<Num>,
    /// Whether paid overage still passes.
    pub overage_status: Option<RateLimitStatus>,
    /// When overage resets.
    pub overage_resets_at: Option<Num>,
    /// Why overage is not available.
    pub overage_disabled_reason: Option<String>,
    /// Whether overage is being used.
    pub is_using_overage: Option<bool>,
    /// Whether overage is in use for this request.
    pub overage_in_use: Option<bool>,
    /// Whether overage is enabled.
    pub overage_enabled: Option<bool>,
    /// The warning threshold that was passed.
    pub surpassed_threshold: Option<Num>,
    /// What the limit covers.
    pub limit_scope: Option<String>,
    /// The API's code.
    pub error_code: Option<String>,
    /// Whether the user can buy credits.
    pub can_user_purchase_credits: Option<bool>,
    /// Whether a means of payment is on file.
    pub has_chargeable_saved_payment_method: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Whether requests pass a limit.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum RateLimitStatus {
    /// Requests pass.
    Allowed,
    /// Requests pass, but the limit is close.
    AllowedWarning,
    /// Requests are rejected.
    Rejected,
    /// A status this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// `prompt_suggestion`: what the user might ask next; comes after a `result`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PromptSuggestion {
    /// The prompt.
    pub suggestion: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `conversation_reset`: the conversation was cleared; later frames carry the new session id.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ConversationReset {
    /// The new session.
    pub new_conversation_id: SessionId,
    /// `clear`, `plan_mode_exit`, `fresh_session` or `onboarding`.
    pub trigger: Option<String>,
    /// The prompt that caused it.
    pub user_message_uuid: Option<Uuid>,
    /// When (RFC 3339).
    pub timestamp: Option<String>,
    /// The old session.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `command_lifecycle`: the state of a prompt that was sent with a `uuid`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(command_uuid, state))]
#[non_exhaustive]
pub struct CommandLifecycle {
    /// The prompt.
    pub command_uuid: Uuid,
    /// Its state.
    pub state: CommandState,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// The state of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum CommandState {
    /// It waits.
    Queued,
    /// Its turn runs.
    Started,
    /// Its turn is over.
    Completed,
    /// It was withdrawn.
    Cancelled,
    /// A state this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// `transcript_mirror`: lines just written to a session file, for a host that keeps its own copy.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TranscriptMirror {
    /// The file.
    #[wire(name = "filePath")]
    pub file_path: String,
    /// The lines.
    pub entries: Vec<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `active_goal`: the goal a remote session works towards.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ActiveGoal {
    /// The goal, or `null` if it was removed.
    #[wire(nullable)]
    pub value: Option<Goal>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// A goal with its progress.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Goal {
    /// The condition for reaching it, as text.
    pub condition: String,
    /// Rounds so far.
    pub iterations: u64,
    /// When it was set (Unix milliseconds).
    pub set_at: Num,
    /// Tokens spent before.
    pub tokens_at_start: u64,
    /// Why the last round did not reach it.
    pub last_reason: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `autocompact_state`: how near automatic compaction is; remote sessions only, with fields that are not published.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct AutocompactState {
    /// The conversation.
    pub session_id: Option<SessionId>,
    /// This frame.
    pub uuid: Option<Uuid>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `streamlined_text`: text in the reduced output mode of the old level.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct StreamlinedText {
    /// The text.
    pub text: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `streamlined_tool_use_summary`: tool calls in the reduced output mode of the old level.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct StreamlinedToolUseSummary {
    /// The calls in one sentence.
    pub tool_summary: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `keep_alive`: allowed at any time in both directions, without an answer.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct KeepAlive {
    /// The progress of the start-up, on request.
    pub startup_mark: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `update_environment_variables`: a remote host sends new credentials to the engine.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct UpdateEnvironmentVariables {
    /// The variables to set.
    pub variables: BTreeMap<String, String>,
    /// Unknown fields.
    pub extra: Extra,
}
