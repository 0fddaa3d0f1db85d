//! `result`: how a turn ended.

use std::collections::BTreeMap;

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::Origin;
use crate::api::{ModelUsage, StopReason, Usage};
use crate::{Extra, Num, SessionId, ToolUseId, Uuid};

/// `result`: the end of one turn, exactly one per turn.
///
/// `success` with `is_error` set means that the API failed and the text says how; the other subtypes carry
/// `errors` and no text. A process exits with 1 when its last result had `is_error`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TurnResult {
    /// How it ended.
    pub subtype: ResultSubtype,
    /// Whether a host should treat it as a failure.
    pub is_error: bool,
    /// Wall time.
    pub duration_ms: Num,
    /// Of it, waiting for the API.
    pub duration_api_ms: Num,
    /// User-role messages of the turn: the prompt, every tool result, every synthetic prompt.
    pub num_turns: u64,
    /// The last text of the model; only with `success`.
    pub result: Option<String>,
    /// What went wrong; only without `success`.
    pub errors: Option<Vec<String>>,
    /// The model's last stop reason.
    #[wire(nullable)]
    pub stop_reason: Option<StopReason>,
    /// The conversation.
    pub session_id: SessionId,
    /// Dollars since the process began.
    pub total_cost_usd: Num,
    /// Tokens of this turn's main loop.
    pub usage: Usage,
    /// Tokens and dollars per model since the process began.
    #[wire(name = "modelUsage")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// Tool calls that were denied.
    pub permission_denials: Vec<PermissionDenial>,
    /// The answer in the requested schema.
    pub structured_output: Option<Value>,
    /// This frame.
    pub uuid: Uuid,
    /// Why the loop ended.
    pub terminal_reason: Option<TerminalReason>,
    /// HTTP status of an API error; `null` when there was none.
    pub api_error_status: Option<u16>,
    /// The API's error type.
    pub api_error_type: Option<String>,
    /// The engine's code for the API error.
    pub api_error: Option<String>,
    /// Prompts that wait.
    pub queued_turn_count: Option<u64>,
    /// Counts the results of a process from 0.
    pub result_index: Option<u64>,
    /// The prompt this answers.
    pub user_message_uuid: Option<Uuid>,
    /// All prompts this answers.
    pub user_message_uuids: Option<Vec<Uuid>>,
    /// The cause of the turn, if not a user.
    pub origin: Option<Origin>,
    /// A deferred tool call.
    pub deferred_tool_use: Option<DeferredToolUse>,
    /// The slash command that was run instead of the model.
    pub local_command: Option<String>,
    /// Why the turn was resumed.
    pub resume_reason: Option<String>,
    /// Why the engine could not start.
    pub startup_failure_reason: Option<String>,
    /// The configuration file that could not be read.
    pub invalid_config_file: Option<InvalidConfigFile>,
    /// When the credential in use ends.
    pub credential_expires_at: Option<String>,
    /// Whether fast mode is on: `off`, `cooldown`, `on`.
    pub fast_mode_state: Option<String>,
    /// Why fast mode is off.
    pub fast_mode_disabled_reason: Option<String>,
    /// The `stopReason` of the hook that ended the turn. Only `ostler` has this field.
    pub hook_stop_reason: Option<String>,
    /// How often the API's safety system stopped the model.
    pub safety_stops: Option<Value>,
    /// What subagents did.
    pub subagent_stats: Option<Value>,
    /// Like `modelUsage`, but only since the last result.
    pub model_usage_since_last_result: Option<Value>,
    /// Time to the first token.
    pub ttft_ms: Option<Num>,
    /// Time to the first streamed byte.
    pub ttft_stream_ms: Option<Num>,
    /// Time until the first request was sent.
    pub time_to_request_ms: Option<Num>,
    /// The same, from the start of the process.
    pub time_to_request_from_spawn_ms: Option<Num>,
    /// Time until the first frame with content.
    pub first_content_frame_ms: Option<Num>,
    /// When the first request was sent (Unix milliseconds).
    pub request_sent_wall_ms: Option<Num>,
    /// Input tokens of the first request.
    pub first_request_input_tokens: Option<u64>,
    /// Of them, read from the cache.
    pub first_request_cache_read_input_tokens: Option<u64>,
    /// Whether a parked process was used.
    pub warm_spare_claimed: Option<bool>,
    /// The zero of the times above (Unix milliseconds).
    pub time_origin_ms: Option<Num>,
    /// Unknown fields.
    pub extra: Extra,
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ResultSubtype {
    /// The model was finished (or the API failed, see [`TurnResult::is_error`]).
    #[default]
    Success,
    /// It was interrupted, or failed internally.
    ErrorDuringExecution,
    /// The limit on turns was reached.
    ErrorMaxTurns,
    /// The dollar limit was reached.
    ErrorMaxBudgetUsd,
    /// The model did not produce the asked-for schema.
    ErrorMaxStructuredOutputRetries,
    /// An end this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Why the loop ended, in more detail than the subtype.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum TerminalReason {
    /// The model was finished.
    Completed,
    /// Interrupted while the model spoke.
    AbortedStreaming,
    /// Interrupted while tools ran.
    AbortedTools,
    /// A hook ended the turn.
    HookStopped,
    /// A stop hook prevented the end for good.
    StopHookPrevented,
    /// The limit on turns.
    MaxTurns,
    /// The dollar limit.
    BudgetExhausted,
    /// The API failed.
    ApiError,
    /// The model failed.
    ModelError,
    /// An image could not be used.
    ImageError,
    /// The conversation does not fit.
    PromptTooLong,
    /// A usage limit.
    BlockingLimit,
    /// The context filled up again right after compaction.
    RapidRefillBreaker,
    /// The model kept sending broken tool calls.
    MalformedToolUseExhausted,
    /// The model kept missing the schema.
    StructuredOutputRetryExhausted,
    /// A tool call was deferred.
    ToolDeferred,
    /// A tool call was deferred and the tool is gone.
    ToolDeferredUnavailable,
    /// The turn went to the background.
    BackgroundRequested,
    /// The turn could not begin.
    TurnSetupFailed,
    /// A reason this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A tool call that was denied.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PermissionDenial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: ToolUseId,
    /// Its arguments.
    pub tool_input: Value,
    /// Unknown fields.
    pub extra: Extra,
}

/// A tool call that a hook deferred.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct DeferredToolUse {
    /// The call.
    pub id: ToolUseId,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
    /// Unknown fields.
    pub extra: Extra,
}

/// A configuration file that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct InvalidConfigFile {
    /// The file.
    pub path: String,
    /// Whether it is the user's global one.
    pub is_global: bool,
    /// Whether a backup was looked for.
    pub backup_searched: bool,
    /// The backup, if there is one.
    pub backup_path: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}
