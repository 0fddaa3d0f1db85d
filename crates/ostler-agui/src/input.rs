//! The request of a client that starts a run.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Metadata;
use crate::message::Message;
pub use crate::read::InputError;
use crate::read::Reader;

/// The body of a run request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAgentInput {
    /// The id of the conversation, chosen by the application.
    pub thread_id: String,
    /// The id of this run.
    pub run_id: String,
    /// The whole conversation so far.
    pub messages: Vec<Message>,
    /// The client's version of the protocol; `None` before 1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The run from which this one branches off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
    /// The shared state as the client has it; `None` if the field is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
    /// Tools that the client runs.
    pub tools: Vec<Tool>,
    /// Context for the model.
    pub context: Vec<Context>,
    /// Data of the application; untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded_props: Option<Value>,
    /// Answers to the questions of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<Resume>>,
    /// Warnings about unknown or ignored parts of the input, for the log.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Additional data by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A piece of context for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Context {
    /// What `value` is.
    pub description: String,
    /// The content.
    pub value: String,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resume {
    /// The question's id.
    pub interrupt_id: String,
    /// Whether the question is answered or cancelled.
    pub status: ResumeStatus,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Additional data by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// The state of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStatus {
    /// The question is answered.
    Resolved,
    /// The question is cancelled.
    Cancelled,
}

impl RunAgentInput {
    /// Decodes a request body.
    ///
    /// # Errors
    /// If it is not JSON, or a known field is missing or invalid; the error names the field.
    pub fn from_json(body: &[u8]) -> Result<Self, InputError> {
        let value: Value = serde_json::from_slice(body).map_err(|error| InputError {
            field: "the body".to_owned(),
            expected: format!("JSON: {error}"),
        })?;
        Self::from_value(&value)
    }

    /// Decodes a JSON value.
    ///
    /// # Errors
    /// As [`RunAgentInput::from_json`].
    pub fn from_value(value: &Value) -> Result<Self, InputError> {
        let reader = Reader::over(value, "")?;
        let messages = reader.list("messages", Message::read)?;
        let mut input = Self {
            thread_id: reader.string("threadId")?,
            run_id: reader.string("runId")?,
            messages: messages.into_iter().flatten().collect(),
            protocol_version: reader.maybe_string("protocolVersion")?,
            parent_run_id: reader.maybe_string("parentRunId")?,
            // `null` is a valid state here, not an absent one.
            state: reader.maybe_any("state").cloned(),
            tools: reader.maybe_list("tools", Tool::read)?.unwrap_or_default(),
            context: reader.maybe_list("context", Context::read)?.unwrap_or_default(),
            forwarded_props: reader.maybe("forwardedProps").cloned(),
            resume: reader.maybe_list("resume", Resume::read)?,
            warnings: Vec::new(),
        };
        input.warnings = reader.warnings();
        Ok(input)
    }

    /// Whether the client is older than 1.0.
    pub fn is_old_peer(&self) -> bool {
        self.protocol_version.is_none()
    }

    /// The client's major version if it differs from ours. A version that cannot be parsed does not count as different.
    pub fn foreign_major(&self) -> Option<u64> {
        let version = self.protocol_version.as_deref()?;
        let major = version.split('.').next()?.parse().ok()?;
        (major != 1).then_some(major)
    }
}

impl<'de> Deserialize<'de> for RunAgentInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Tool {
    fn read(reader: &Reader<'_>) -> Result<Self, InputError> {
        let parameters = reader.maybe("parameters");
        // The protocol allows any value here, the model only objects.
        if parameters.is_some_and(|schema| !schema.is_object()) {
            reader.warn("parameters", "not the schema of an object; ignored");
        }
        Ok(Self {
            name: reader.string("name")?,
            description: reader.string("description")?,
            parameters: parameters.filter(|schema| schema.is_object()).cloned(),
            metadata: reader.maybe_object("metadata")?,
        })
    }
}

impl Context {
    fn read(reader: &Reader<'_>) -> Result<Self, InputError> {
        Ok(Self { description: reader.string("description")?, value: reader.string("value")? })
    }
}

impl Resume {
    fn read(reader: &Reader<'_>) -> Result<Self, InputError> {
        let status = match reader.string("status")?.as_str() {
            "resolved" => ResumeStatus::Resolved,
            "cancelled" => ResumeStatus::Cancelled,
            _ => return Err(reader.wrong("status", "`resolved` or `cancelled`")),
        };
        Ok(Self {
            interrupt_id: reader.string("interruptId")?,
            status,
            payload: reader.maybe("payload").cloned(),
            metadata: reader.maybe_object("metadata")?,
        })
    }
}
