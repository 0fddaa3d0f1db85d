//! The 31 events of AG-UI 1.0.
//!
//! An [`Event`] is a [`Body`] (what happened, one variant per type) and what any event may carry. Nothing undeclared
//! can be written, and what is absent is left out: clients of 1.0 take a `null` in most places for a fault.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Metadata;
use crate::input::RunAgentInput;
use crate::message::{Content, Message};
use crate::patch::Operation;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
    /// The subagent it happened to; only for events that allow it, see [`Event::of_subagent`].
    #[serde(rename = "subagentRunId", skip_serializing_if = "Option::is_none")]
    subagent_run_id: Option<String>,
    /// When, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// What it was made from.
    #[serde(rename = "rawEvent", skip_serializing_if = "Option::is_none")]
    pub raw_event: Option<Value>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl Event {
    /// An event with nothing else said about it.
    pub fn new(body: Body) -> Self {
        Self { body, subagent_run_id: None, timestamp: None, raw_event: None, metadata: None }
    }

    /// Says whose event it is. An event that cannot belong to a subagent stays as it is.
    #[must_use]
    pub fn of_subagent(mut self, run: Option<&str>) -> Self {
        if self.body.is_attributable() {
            self.subagent_run_id = run.map(str::to_owned);
        }
        self
    }

    /// Adds a remark.
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// The subagent it happened to.
    pub fn subagent_run_id(&self) -> Option<&str> {
        self.subagent_run_id.as_deref()
    }

    /// Whether the run is over with it.
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

/// Reads what clients would read: unknown fields are passed over.
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

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the fields are the protocol's; its words are better than ours")]
pub enum Body {
    /// A run begins.
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
    /// It ended as it should, or was stopped on purpose.
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
    /// It failed.
    RunError {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Vec<TokenUsage>>,
    },
    /// A named phase begins.
    StepStarted { step_name: String },
    /// And ends.
    StepFinished { step_name: String },
    /// Text begins.
    TextMessageStart {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<TextRole>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// More of it.
    TextMessageContent { message_id: String, delta: String },
    /// Its end.
    TextMessageEnd { message_id: String },
    /// All three in one, for producers that do not know where text begins.
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
    /// A tool is called.
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
    },
    /// More of its arguments.
    ToolCallArgs { tool_call_id: String, delta: String },
    /// The arguments are complete.
    ToolCallEnd { tool_call_id: String },
    /// All three in one.
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
    /// What the tool answered.
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: Content,
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<ToolRole>,
    },
    /// The shared state, whole.
    StateSnapshot { snapshot: Value },
    /// A change of it.
    StateDelta { delta: Vec<Operation> },
    /// The conversation, whole.
    MessagesSnapshot { messages: Vec<Message> },
    /// Something that goes on, whole.
    ActivitySnapshot {
        message_id: String,
        activity_type: String,
        content: Metadata,
        #[serde(skip_serializing_if = "Option::is_none")]
        replace: Option<bool>,
    },
    /// A change of it.
    ActivityDelta { message_id: String, activity_type: String, patch: Vec<Operation> },
    /// The model begins to reason.
    ReasoningStart { message_id: String },
    /// And stops.
    ReasoningEnd { message_id: String },
    /// A visible thought begins.
    ReasoningMessageStart { message_id: String, role: ReasoningRole },
    /// More of it.
    ReasoningMessageContent { message_id: String, delta: String },
    /// Its end.
    ReasoningMessageEnd { message_id: String },
    /// All three in one.
    ReasoningMessageChunk {
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    },
    /// What the provider wants back with a thought or a call.
    ReasoningEncryptedValue {
        subtype: EncryptedSubtype,
        entity_id: String,
        encrypted_value: String,
    },
    /// A subagent begins.
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
    /// It is done, or waits.
    SubagentFinished {
        subagent_run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<SubagentOutcome>,
    },
    /// It failed.
    SubagentError {
        subagent_run_id: String,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// Something of the layer below, as it is.
    Raw {
        event: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// Something of our own.
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

/// Whose text it is.
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

/// The only role of a thought.
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
    /// Well.
    Success {
        /// Calls of this run that the client is to answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        pending_tool_call_ids: Option<Vec<String>>,
    },
    /// With a question; the next run brings the answers.
    Interrupt {
        /// The questions, at least one.
        interrupts: Vec<Interrupt>,
    },
    /// Stopped on purpose.
    Cancelled {},
}

/// A question to whoever sits at the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// Its name, unique in the run.
    pub id: String,
    /// What kind it is: `tool_call`, `input_required`, `confirmation`, or `vendor:name`.
    pub reason: String,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The call it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What an answer must look like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Metadata>,
    /// Until when an answer counts (ISO 8601).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The subagent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<String>,
}

/// How a subagent's part of a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum SubagentOutcome {
    /// It is done.
    Success {},
    /// It goes on in a later run.
    Suspended {
        /// What it waits for.
        #[serde(skip_serializing_if = "Option::is_none")]
        interrupt_ids: Option<Vec<String>>,
    },
}

/// What a run used, per provider and model. What is absent is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Who served the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// All input, cached or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Of the output, reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Of the input, read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// Of the input, written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<u64>,
}
