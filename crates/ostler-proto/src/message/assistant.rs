//! `assistant` and `stream_event`: finished and streamed output of the model.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::api::{Message, StreamEvent};
use crate::{AgentId, Extra, Num, SessionId, ToolUseId, Uuid};

/// `assistant`: one finished content block of a response.
///
/// Frames of one response share `message.id`. With partial messages on, the frame comes just before the
/// `content_block_stop` of its block.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct Assistant {
    /// The response, with this one block as its content.
    pub message: Message,
    /// The call of the subagent this comes from; `None` in the main conversation.
    #[wire(nullable)]
    pub parent_tool_use_id: Option<ToolUseId>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Set on messages the engine wrote because the API failed.
    pub error: Option<AssistantError>,
    /// When it was made (RFC 3339).
    pub timestamp: Option<String>,
    /// The API's id of the request.
    pub request_id: Option<String>,
    /// The prompt this answers.
    pub user_message_uuid: Option<Uuid>,
    /// All prompts this answers, when several were merged.
    pub user_message_uuids: Option<Vec<Uuid>>,
    /// True if the response was interrupted and this is only its start.
    pub aborted: Option<bool>,
    /// Earlier frames this one replaces.
    pub supersedes: Option<Vec<Uuid>>,
    /// The subagent that sent it.
    pub agent_id: Option<AgentId>,
    /// Its type.
    pub subagent_type: Option<String>,
    /// What it was asked to do, in a few words.
    pub task_description: Option<String>,
    /// Display names for MCP tool calls in the message.
    pub tool_use_meta: Option<Vec<ToolUseMeta>>,
    /// True on API errors.
    pub is_api_error_message: Option<bool>,
    /// HTTP status of the API error.
    pub api_error_status: Option<u16>,
    /// The API's error type.
    pub api_error_type: Option<String>,
    /// The engine's code for the API error.
    pub api_error: Option<String>,
    /// Parameters of that error.
    pub api_error_params: Option<Value>,
    /// How long the model thought before this block.
    pub thinking_duration_ms: Option<Num>,
    /// How thinking is shown.
    pub thinking_display: Option<String>,
    /// How full the context window is, on the answer to `/context`.
    pub context_usage: Option<Value>,
    /// The usage, in the answer to `/usage`.
    pub usage_report: Option<Value>,
    /// Why the turn was resumed.
    pub resume_reason: Option<String>,
    /// True if unfinished thinking was resumed.
    pub resumed_from_incomplete_thinking: Option<bool>,
    /// The refused message that this replaces.
    pub refused_message_id: Option<String>,
    /// The slash command whose output this is.
    pub local_command_source: Option<Value>,
    /// How that command ran.
    pub local_command_run: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Why the engine wrote an `assistant` message itself.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum AssistantError {
    /// The key or token was refused.
    AuthenticationFailed,
    /// The organisation does not allow this login.
    OauthOrgNotAllowed,
    /// The account is on hold.
    AccountOnHold,
    /// The account must be verified first.
    VerificationRequired,
    /// Credit ran out.
    BillingError,
    /// Too many requests.
    RateLimit,
    /// The API has no capacity.
    Overloaded,
    /// The API refused the request.
    InvalidRequest,
    /// The model does not exist.
    ModelNotFound,
    /// The API failed.
    ServerError,
    /// The output limit cut the response.
    MaxOutputTokens,
    /// A cloud provider's credentials failed.
    CloudCredentialError,
    /// Anything else.
    Unknown,
    /// A reason this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Names to show for an MCP tool call.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ToolUseMeta {
    /// The call.
    pub id: ToolUseId,
    /// The tool's title.
    pub display_name: Option<String>,
    /// The server's title.
    pub server_display_name: Option<String>,
    /// The tool's name without the server.
    pub tool_name: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `stream_event`: one raw event of the response, sent only when the host asked for partial messages.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(new(event, session_id, uuid))]
#[non_exhaustive]
pub struct StreamEventMessage {
    /// The API's event, unchanged.
    pub event: StreamEvent,
    /// The call of the subagent this comes from; `None` in the main conversation.
    #[wire(nullable)]
    pub parent_tool_use_id: Option<ToolUseId>,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Time to the first token, on `message_start`.
    pub ttft_ms: Option<Num>,
    /// The response the event belongs to.
    pub api_message_id: Option<String>,
    /// How thinking is shown.
    pub thinking_display: Option<String>,
    /// On a synthetic `message_stop`: the blocks that will never be finished.
    pub abandoned_blocks: Option<AbandonedBlocks>,
    /// The prompt this answers.
    pub user_message_uuid: Option<Uuid>,
    /// All prompts this answers.
    pub user_message_uuids: Option<Vec<Uuid>>,
    /// Why the turn was resumed.
    pub resume_reason: Option<String>,
    /// Rows of a terminal view that are still to be drawn.
    pub owed_rows: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Blocks of a broken response that will never be finished.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct AbandonedBlocks {
    /// The response.
    pub api_message_id: String,
    /// The first of them.
    pub from_block_index: u64,
    /// Unknown fields.
    pub extra: Extra,
}
