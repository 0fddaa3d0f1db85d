//! Lines of a session file, `<config>/projects/<folder>/<session-id>.jsonl`.
//!
//! Files are only appended to. Lines that carry a `uuid` form a tree through `parentUuid`; the conversation is the
//! path from the last leaf to the root. Readers need no more than `type`, `uuid`, `parentUuid`, `sessionId`,
//! `timestamp` and `message`; everything else helps them to show the session.

use std::collections::BTreeMap;

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::api::{Message, ModelUsage};
use crate::frame::Frame;
use crate::message::UserContent;
use crate::permission::PermissionMode;
use crate::wire::WireObject;
use crate::{AgentId, Extra, Num, SessionId, ToolUseId, UnknownObject, Uuid};

/// One line of a session file.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type", tag_optional, rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TranscriptLine {
    /// A prompt or a tool result.
    User(Box<Entry<UserContent>>),
    /// One block of a response.
    Assistant(Box<Entry<Message>>),
    /// A note of the engine, such as a compaction boundary.
    System(Box<SystemEntry>),
    /// Progress of a tool or hook (old level).
    Progress(Box<ProgressEntry>),
    /// A prompt was queued or started.
    QueueOperation(QueueOperation),
    /// Which files can be restored, as of a prompt.
    FileHistorySnapshot(FileHistorySnapshot),
    /// One more file that can be restored.
    FileHistoryDelta(FileHistoryDelta),
    /// The latest prompt, for listings.
    LastPrompt(LastPrompt),
    /// What the session has cost so far.
    CostState(CostState),
    /// A title given by the user.
    CustomTitle(CustomTitle),
    /// A title given by the model.
    AiTitle(AiTitle),
    /// A tag.
    Tag(TagLine),
    /// A summary, for listings.
    Summary(Summary),
    /// A line this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

impl Frame for TranscriptLine {
    fn summary(&self) -> String {
        self.tag().unwrap_or_default().to_owned()
    }
}

/// A message of the conversation: `M` is the content of the user or the model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry<M> {
    /// Role and content.
    pub message: M,
    /// The line's place in the tree, and its context.
    pub place: EntryContext,
}

impl<M> Entry<M> {
    /// A message and its context.
    pub fn new(message: M, place: EntryContext) -> Self {
        Self { message, place }
    }
}

// Written by hand because the derive supports neither type parameters nor shared groups of fields.
impl<M: serde::Serialize + serde::de::DeserializeOwned> WireObject for Entry<M> {
    const NAME: &'static str = "Entry";

    fn read<'de, A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut message = None;
        let mut rest = serde_json::Map::new();
        while let Some(key) = crate::wire::next_key(&mut map)? {
            match &*key {
                "message" => message = Some(crate::wire::field(&mut map, "message")?),
                _ => _ = rest.insert(key.into_owned(), map.next_value()?),
            }
        }
        let message = message.ok_or_else(|| serde::de::Error::missing_field("message"))?;
        let place =
            serde_json::from_value(Value::Object(rest)).map_err(serde::de::Error::custom)?;
        Ok(Self { message, place })
    }

    fn write<S: serde::ser::SerializeMap>(&self, map: &mut S) -> Result<(), S::Error> {
        map.serialize_entry("message", &self.message)?;
        self.place.write(map)
    }
}

/// The other fields of message lines.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EntryContext {
    /// The line before; `null` for the first.
    #[wire(nullable)]
    pub parent_uuid: Option<Uuid>,
    /// This line; the same as on the wire.
    pub uuid: Uuid,
    /// The conversation.
    pub session_id: SessionId,
    /// When it was written (RFC 3339).
    pub timestamp: String,
    /// Whether it belongs to a subagent.
    pub is_sidechain: Option<bool>,
    /// The subagent.
    pub agent_id: Option<AgentId>,
    /// `external`.
    pub user_type: Option<String>,
    /// Who started the engine: `sdk-ts`, `sdk-py`, `cli`.
    pub entrypoint: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The engine's version.
    pub version: Option<String>,
    /// The git branch.
    pub git_branch: Option<String>,
    /// A readable name of the session.
    pub slug: Option<String>,
    /// Whether the line is not part of the conversation.
    pub is_meta: Option<bool>,
    /// Whether it is a summary made by compaction.
    pub is_compact_summary: Option<bool>,
    /// Whether only transcripts show it.
    pub is_visible_in_transcript_only: Option<bool>,
    /// The permission mode when a prompt came.
    pub permission_mode: Option<PermissionMode>,
    /// The prompt this belongs to.
    pub prompt_id: Option<String>,
    /// Where the prompt came from.
    pub prompt_source: Option<String>,
    /// Who caused the turn.
    pub turn_origin: Option<String>,
    /// Which turn of which prompt.
    pub turn_position: Option<Value>,
    /// Groups turns for attribution.
    pub turn_attribution_key: Option<Value>,
    /// A tool's structured output.
    pub tool_use_result: Option<Value>,
    /// The line that called the tool.
    #[wire(name = "sourceToolAssistantUUID")]
    pub source_tool_assistant_uuid: Option<Uuid>,
    /// Who decided on the call.
    pub permission_decision: Option<Value>,
    /// Whether the tool ran in a sandbox.
    pub sandboxed: Option<Value>,
    /// The API's id of the request.
    pub request_id: Option<String>,
    /// The request as this engine counts them.
    pub request_ref: Option<Value>,
    /// Position of the block in the response.
    pub api_block_index: Option<u64>,
    /// The model that was asked for.
    pub requested_model: Option<String>,
    /// Whether the prompt cache was asked for.
    pub prompt_cache_requested: Option<Value>,
    /// The effort level.
    pub effort: Option<Value>,
    /// The same, for this turn only.
    pub per_turn_effort: Option<Value>,
    /// How long the tool's input took to stream.
    pub tool_input_stream_ms: Option<Num>,
    /// Which agent the line is attributed to.
    pub attribution_agent: Option<Value>,
    /// What made the line.
    pub made_by: Option<Value>,
    /// Whether a failed response had no tool call.
    pub failed_response_had_no_tool_call: Option<bool>,
    /// Set on API errors.
    pub error: Option<String>,
    /// True on API errors.
    pub is_api_error_message: Option<bool>,
    /// HTTP status of the API error.
    pub api_error_status: Option<u16>,
    /// The API's error type.
    pub api_error_type: Option<String>,
    /// Where the line was copied from, in a forked session.
    pub forked_from: Option<ForkedFrom>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where a line of a forked session was copied from.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ForkedFrom {
    /// The session.
    pub session_id: SessionId,
    /// The line.
    pub message_uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `system`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SystemEntry {
    /// The line before; `null` after a compaction.
    #[wire(nullable)]
    pub parent_uuid: Option<Uuid>,
    /// The line that was before a compaction.
    pub logical_parent_uuid: Option<Uuid>,
    /// The kind of note.
    pub subtype: String,
    /// For people.
    pub content: Option<String>,
    /// `info`, ….
    pub level: Option<String>,
    /// What a compaction did.
    pub compact_metadata: Option<Value>,
    /// This line.
    pub uuid: Uuid,
    /// The conversation.
    pub session_id: SessionId,
    /// When it was written (RFC 3339).
    pub timestamp: String,
    /// Whether it belongs to a subagent.
    pub is_sidechain: Option<bool>,
    /// Whether the line is not part of the conversation.
    pub is_meta: Option<bool>,
    /// `external`.
    pub user_type: Option<String>,
    /// Who started the engine.
    pub entrypoint: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The engine's version.
    pub version: Option<String>,
    /// The git branch.
    pub git_branch: Option<String>,
    /// A readable name of the session.
    pub slug: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `progress`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressEntry {
    /// The line before.
    #[wire(nullable)]
    pub parent_uuid: Option<Uuid>,
    /// The progress data.
    pub data: Value,
    /// The call, or something under it.
    #[wire(name = "toolUseID")]
    pub tool_use_id: Option<ToolUseId>,
    /// The call.
    #[wire(name = "parentToolUseID")]
    pub parent_tool_use_id: Option<ToolUseId>,
    /// This line.
    pub uuid: Uuid,
    /// The conversation.
    pub session_id: SessionId,
    /// When it was written (RFC 3339).
    pub timestamp: String,
    /// Whether it belongs to a subagent.
    pub is_sidechain: Option<bool>,
    /// `external`.
    pub user_type: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The engine's version.
    pub version: Option<String>,
    /// The git branch.
    pub git_branch: Option<String>,
    /// A readable name of the session.
    pub slug: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `queue-operation`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueueOperation {
    /// `enqueue`, `dequeue` or `remove`.
    pub operation: String,
    /// When (RFC 3339).
    pub timestamp: String,
    /// The conversation.
    pub session_id: SessionId,
    /// The prompt, if it is a plain string.
    pub content: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `file-history-snapshot`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileHistorySnapshot {
    /// The prompt.
    pub message_id: Uuid,
    /// The files.
    pub snapshot: FileSnapshot,
    /// Whether it replaces the one before.
    pub is_snapshot_update: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// The files that a rewind can restore.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileSnapshot {
    /// The prompt.
    pub message_id: Uuid,
    /// Files by path.
    pub tracked_file_backups: BTreeMap<String, FileBackup>,
    /// When (RFC 3339).
    pub timestamp: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// The state of a file before an edit.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileBackup {
    /// Where the old content is; `null` when the file did not exist.
    #[wire(nullable)]
    pub backup_file_name: Option<String>,
    /// Counts up from 1.
    pub version: u64,
    /// When (RFC 3339).
    pub backup_time: String,
    /// The folder of the file with links followed.
    pub real_parent_dir: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `file-history-delta`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FileHistoryDelta {
    /// The edit.
    pub message_id: Uuid,
    /// The prompt.
    pub snapshot_message_id: Uuid,
    /// The file.
    pub tracking_path: String,
    /// Its state before.
    pub backup: FileBackup,
    /// When (RFC 3339).
    pub timestamp: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `last-prompt`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LastPrompt {
    /// The prompt.
    pub last_prompt: String,
    /// The line it ended in.
    pub leaf_uuid: Option<Uuid>,
    /// The conversation.
    pub session_id: SessionId,
    /// Unknown fields.
    pub extra: Extra,
}

/// `cost-state`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CostState {
    /// The conversation.
    pub session_id: SessionId,
    /// Dollars.
    #[wire(name = "totalCostUSD")]
    pub total_cost_usd: Num,
    /// Milliseconds at the API.
    #[wire(name = "totalAPIDuration")]
    pub total_api_duration: Option<Num>,
    /// Of them, in requests that succeeded.
    #[wire(name = "totalAPIDurationWithoutRetries")]
    pub total_api_duration_without_retries: Option<Num>,
    /// Milliseconds in tools.
    pub total_tool_duration: Option<Num>,
    /// Milliseconds in all.
    pub total_duration: Option<Num>,
    /// Lines added to files.
    pub total_lines_added: Option<u64>,
    /// Lines removed from files.
    pub total_lines_removed: Option<u64>,
    /// When the process began (Unix milliseconds).
    pub start_time: Option<Num>,
    /// Per model.
    pub model_usage: Option<BTreeMap<String, ModelUsage>>,
    /// Whether a model without a known price took part.
    pub has_unknown_model_cost: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `custom-title`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CustomTitle {
    /// The title.
    pub custom_title: String,
    /// The conversation.
    pub session_id: SessionId,
    /// Unknown fields.
    pub extra: Extra,
}

/// `ai-title`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AiTitle {
    /// The title.
    pub ai_title: String,
    /// The conversation.
    pub session_id: SessionId,
    /// Unknown fields.
    pub extra: Extra,
}

/// `tag`. Readers look for lines that start with `{"type":"tag"`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TagLine {
    /// The tag; empty to take it away.
    pub tag: String,
    /// The conversation.
    pub session_id: SessionId,
    /// Unknown fields.
    pub extra: Extra,
}

/// `summary`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// In a sentence.
    pub summary: String,
    /// The line it sums up to.
    pub leaf_uuid: Option<Uuid>,
    /// Unknown fields.
    pub extra: Extra,
}
