//! The 31 events of AG-UI 1.0.
//!
//! An [`Event`] has a [`Body`] (one variant per type) and the fields that every event may have. Undeclared fields
//! cannot be written, and absent ones are left out: 1.0 clients reject `null` in most places.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Metadata;
use crate::input::RunAgentInput;
use crate::message::{Content, Message};
use crate::patch::Operation;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Its type and the fields of that type.
    #[serde(flatten)]
    pub body: Body,
    /// The subagent it belongs to; only for events that allow it, see [`Event::of_subagent`].
    #[serde(rename = "subagentRunId", skip_serializing_if = "Option::is_none")]
    subagent_run_id: Option<String>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// The message it was translated from.
    #[serde(rename = "rawEvent", skip_serializing_if = "Option::is_none")]
    pub raw_event: Option<Value>,
    /// Additional data by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl Event {
    /// Makes an event with only a body.
    pub fn new(body: Body) -> Self {
        Self { body, subagent_run_id: None, timestamp: None, raw_event: None, metadata: None }
    }

    /// Sets the subagent. An event that cannot belong to a subagent is left unchanged.
    #[must_use]
    pub fn of_subagent(mut self, run: Option<&str>) -> Self {
        if self.body.is_attributable() {
            self.subagent_run_id = run.map(str::to_owned);
        }
        self
    }

    /// Adds an entry to the metadata.
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// The subagent it belongs to.
    pub fn subagent_run_id(&self) -> Option<&str> {
        self.subagent_run_id.as_deref()
    }

    /// Whether it ends the run.
    pub fn is_terminal(&self) -> bool {
        matches!(self.body, Body::RunFinished { .. } | Body::RunError { .. })
    }

    /// The event as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("events have string keys and finite numbers")
    }
}

impl From<Body> for Event {
    fn from(body: Body) -> Self {
        Self::new(body)
    }
}

/// Decodes as clients do: unknown fields are skipped.
impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Rest {
            subagent_run_id: Option<String>,
            timestamp: Option<i64>,
            raw_event: Option<Value>,
            metadata: Option<Metadata>,
        }
        let value = Value::deserialize(deserializer)?;
        let rest = Rest::deserialize(&value).map_err(serde::de::Error::custom)?;
        let body = Body::deserialize(value).map_err(serde::de::Error::custom)?;
        let subagent_run_id = rest.subagent_run_id.filter(|_| body.is_attributable());
        let Rest { timestamp, raw_event, metadata, .. } = rest;
        Ok(Self { body, subagent_run_id, timestamp, raw_event, metadata })
    }
}

/// The type of an event, with its fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the protocol documents its fields")]
pub enum Body {
    /// A run starts.
    RunStarted {
        thread_id: String,
        run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol_version: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_run_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Box<RunAgentInput>>,
    },
    /// The run succeeded, was interrupted, or was stopped on purpose.
    RunFinished {
        thread_id: String,
        run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Vec<TokenUsage>>,
    },
    /// The run failed.
    RunError {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Vec<TokenUsage>>,
    },
    /// A named step starts.
    StepStarted { step_name: String },
    /// A named step ends.
    StepFinished { step_name: String },
    /// A text message starts.
    TextMessageStart {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<TextRole>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A text delta.
    TextMessageContent { message_id: String, delta: String },
    /// A text message ends.
    TextMessageEnd { message_id: String },
    /// Start, content and end in one, for producers that do not know where a message starts.
    TextMessageChunk {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<TextRole>,
        #[serde(skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A tool call starts.
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
    },
    /// An arguments delta.
    ToolCallArgs { tool_call_id: String, delta: String },
    /// The arguments are complete.
    ToolCallEnd { tool_call_id: String },
    /// Start, arguments and end in one.
    ToolCallChunk {
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    },
    /// The result of a tool call.
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: Content,
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<ToolRole>,
    },
    /// The whole shared state.
    StateSnapshot { snapshot: Value },
    /// A change of the shared state.
    StateDelta { delta: Vec<Operation> },
    /// The whole conversation.
    MessagesSnapshot { messages: Vec<Message> },
    /// The whole content of an activity.
    ActivitySnapshot {
        message_id: String,
        activity_type: String,
        content: Metadata,
        #[serde(skip_serializing_if = "Option::is_none")]
        replace: Option<bool>,
    },
    /// A change of an activity.
    ActivityDelta { message_id: String, activity_type: String, patch: Vec<Operation> },
    /// The model starts to reason.
    ReasoningStart { message_id: String },
    /// The model stops reasoning.
    ReasoningEnd { message_id: String },
    /// A reasoning message starts.
    ReasoningMessageStart { message_id: String, role: ReasoningRole },
    /// A reasoning delta.
    ReasoningMessageContent { message_id: String, delta: String },
    /// A reasoning message ends.
    ReasoningMessageEnd { message_id: String },
    /// Start, content and end in one.
    ReasoningMessageChunk {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    },
    /// Opaque data that the provider needs back with a reasoning message or a call.
    ReasoningEncryptedValue {
        subtype: EncryptedSubtype,
        entity_id: String,
        encrypted_value: String,
    },
    /// A subagent starts.
    SubagentStarted {
        subagent_run_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
    },
    /// A subagent succeeded or is suspended.
    SubagentFinished {
        subagent_run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<SubagentOutcome>,
    },
    /// A subagent failed.
    SubagentError {
        subagent_run_id: String,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// An event of the layer below, unchanged.
    Raw {
        event: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// An event that AG-UI does not define.
    Custom { name: String, value: Value },
}

impl Body {
    /// Whether an event of this type may belong to a subagent.
    pub fn is_attributable(&self) -> bool {
        !matches!(
            self,
            Self::RunStarted { .. }
                | Self::RunFinished { .. }
                | Self::RunError { .. }
                | Self::MessagesSnapshot { .. }
                | Self::SubagentStarted { .. }
                | Self::SubagentFinished { .. }
                | Self::SubagentError { .. }
        )
    }
}

/// The role of a text message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the protocol's words")]
pub enum TextRole {
    Developer,
    System,
    Assistant,
    User,
}

/// The only role of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the protocol's word")]
pub enum ToolRole {
    Tool,
}

/// The only role of a reasoning message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the protocol's word")]
pub enum ReasoningRole {
    Reasoning,
}

/// What an encrypted value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncryptedSubtype {
    /// A message.
    Message,
    /// A call.
    ToolCall,
}

/// How a run ended that did not fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Outcome {
    /// It succeeded.
    Success {
        /// Calls of this run that the client must answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        pending_tool_call_ids: Option<Vec<String>>,
    },
    /// It ended with questions; the client sends the answers with the next run.
    Interrupt {
        /// The questions, at least one.
        interrupts: Vec<Interrupt>,
    },
    /// It was stopped on purpose.
    Cancelled {},
}

/// A question to the user of the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// Unique in the run.
    pub id: String,
    /// `tool_call`, `input_required`, `confirmation`, or `vendor:name`.
    pub reason: String,
    /// The question as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The call that the question is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// JSON Schema of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Metadata>,
    /// When the question expires (ISO 8601).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Additional data by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The subagent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<String>,
}

/// How a subagent ended within a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum SubagentOutcome {
    /// It succeeded.
    Success {},
    /// It continues in a later run.
    Suspended {
        /// The questions it waits for.
        #[serde(skip_serializing_if = "Option::is_none")]
        interrupt_ids: Option<Vec<String>>,
    },
}

/// Token usage of a run, per provider and model. An absent number is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// The provider that served the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// All input tokens, cached or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The part of the output that is reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The part of the input that was read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The part of the input that was written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<u64>,
}
