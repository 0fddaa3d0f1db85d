//! The lines of a recording, as readable JSON.
//!
//! | a line with | means |
//! |---|---|
//! | `ostler_recording` | a run begins; its value is the version of the format |
//! | `exchange` | a request, the events of the answer, and how it ended |
//! | `tool` | the outcome of a tool call |
//!
//! Every line names its run, because several programs may write to one file. A request that continues another one of
//! the same run has the number of that one (`goes_on_from`), how many of its messages it shares, and only the new ones.

use std::time::Duration;

use ostler_proto::api::{Content, StreamEvent};
use ostler_proto::message::AssistantError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::tool_output::{ToolError, ToolOutput};
use crate::{Fallback, FallbackTrigger, ModelError, ModelEvent, Retry};

/// The version of the format.
pub(crate) const VERSION: u64 = 1;

/// A run begins.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RunHeader {
    pub(crate) ostler_recording: u64,
    pub(crate) run: String,
    /// The version of this program.
    pub(crate) ostler: String,
    pub(crate) model: String,
    pub(crate) at: String,
}

/// A request and its answer.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Exchange {
    pub(crate) run: String,
    /// Its number in the run, in the order of the requests.
    pub(crate) exchange: u64,
    pub(crate) request: RequestLine,
    pub(crate) events: Vec<Value>,
    /// When each event came, in milliseconds since the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ms: Vec<u64>,
    pub(crate) end: ExchangeEnd,
}

/// A request.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct RequestLine {
    /// The exchange whose conversation it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) goes_on_from: Option<u64>,
    /// How many messages of that conversation it begins with.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) messages_kept: usize,
    /// Everything but the conversation, unless it is the same as in that exchange.
    #[serde(flatten)]
    pub(crate) head: serde_json::Map<String, Value>,
    pub(crate) messages: Vec<Value>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// How an answer, or a tool call, ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExchangeEnd {
    /// Successfully.
    Complete,
    /// Without an end.
    Cut,
    /// The reader dropped it before its end.
    Abandoned,
    /// With an error.
    Error(RecordedError),
}

/// A [`ModelError`].
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum RecordedError {
    Status { status: u16, r#type: String, message: String },
    Connection { message: String },
    Broken { message: String },
    Protocol { message: String },
    TooLarge { message: String },
    NotLoggedIn,
}

impl From<&ModelError> for RecordedError {
    fn from(error: &ModelError) -> Self {
        match error.clone() {
            ModelError::Status { status, kind, message } => {
                Self::Status { status, r#type: kind, message }
            }
            ModelError::Connection(message) => Self::Connection { message },
            ModelError::Broken(message) => Self::Broken { message },
            ModelError::TooLarge(message) => Self::TooLarge { message },
            ModelError::Protocol(message) | ModelError::Recording(message) => {
                Self::Protocol { message }
            }
            ModelError::NotLoggedIn => Self::NotLoggedIn,
        }
    }
}

impl From<RecordedError> for ModelError {
    fn from(failure: RecordedError) -> Self {
        match failure {
            RecordedError::Status { status, r#type: kind, message } => {
                Self::Status { status, kind, message }
            }
            RecordedError::Connection { message } => Self::Connection(message),
            RecordedError::Broken { message } => Self::Broken(message),
            RecordedError::Protocol { message } => Self::Protocol(message),
            RecordedError::TooLarge { message } => Self::TooLarge(message),
            RecordedError::NotLoggedIn => Self::NotLoggedIn,
        }
    }
}

/// A tool call.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct CallLine {
    pub(crate) run: String,
    /// Its id.
    pub(crate) tool: String,
    pub(crate) name: String,
    pub(crate) input: Value,
    pub(crate) outcome: CallOutcome,
}

/// The outcome of a tool call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Output {
        content: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        follow_up: Option<String>,
    },
    Refused(String),
    Failed(String),
    /// It was stopped.
    Abandoned,
}

impl CallOutcome {
    pub fn of(result: &Result<ToolOutput, ToolError>) -> Self {
        match result {
            Ok(ToolOutput { content, structured, follow_up }) => Self::Output {
                content: json!(content),
                structured: structured.clone(),
                follow_up: follow_up.clone(),
            },
            Err(ToolError::Refused(text)) => Self::Refused(text.clone()),
            Err(ToolError::Failed(text)) => Self::Failed(text.clone()),
        }
    }

    /// The result; `None` if there was none.
    pub(crate) fn result(self) -> Option<Result<ToolOutput, ToolError>> {
        Some(match self {
            Self::Output { content, structured, follow_up } => {
                let content = serde_json::from_value(content).unwrap_or_else(|error| {
                    Content::Text(format!("the recorded output is malformed: {error}"))
                });
                Ok(ToolOutput { content, structured, follow_up })
            }
            Self::Refused(text) => Err(ToolError::Refused(text)),
            Self::Failed(text) => Err(ToolError::Failed(text)),
            Self::Abandoned => return None,
        })
    }
}

/// An event that is not part of the response itself.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum OtherEvent {
    Whole(Box<ostler_proto::api::Message>),
    Retry {
        attempt: u64,
        max_retries: u64,
        delay_ms: u64,
        status: Option<u16>,
        error: AssistantError,
    },
    Fallback {
        from: String,
        to: String,
        /// Missing in older recordings.
        #[serde(default)]
        trigger: FallbackTrigger,
    },
    Named(String),
}

/// An event as it is written: those of a response as the API sends them.
pub(crate) fn write_event(event: &ModelEvent) -> Value {
    json!(match event.clone() {
        ModelEvent::Stream(event) => return json!(event),
        ModelEvent::Whole(message) => OtherEvent::Whole(Box::new(message)),
        ModelEvent::Retry(Retry { attempt, max_retries, delay, status, error }) => {
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            OtherEvent::Retry { attempt, max_retries, delay_ms, status, error }
        }
        ModelEvent::Fallback(Fallback { from, to, trigger }) => {
            OtherEvent::Fallback { from, to, trigger }
        }
        ModelEvent::Named(id) => OtherEvent::Named(id),
    })
}

/// Reads an event.
pub(crate) fn read_event(value: Value) -> Result<ModelEvent, serde_json::Error> {
    if value.get("type").is_some() {
        return serde_json::from_value::<StreamEvent>(value).map(ModelEvent::Stream);
    }
    Ok(match serde_json::from_value(value)? {
        OtherEvent::Whole(message) => ModelEvent::Whole(*message),
        OtherEvent::Retry { attempt, max_retries, delay_ms, status, error } => {
            let delay = Duration::from_millis(delay_ms);
            ModelEvent::Retry(Retry { attempt, max_retries, delay, status, error })
        }
        OtherEvent::Fallback { from, to, trigger } => {
            ModelEvent::Fallback(Fallback { from, to, trigger })
        }
        OtherEvent::Named(id) => ModelEvent::Named(id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_back_as_they_were_written() {
        let retry = Retry {
            attempt: 1,
            max_retries: 10,
            delay: Duration::from_millis(1500),
            status: Some(529),
            error: AssistantError::Overloaded,
        };
        let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "x",
            "content": [{"type": "text", "text": "hi", "new_field": 1}], "usage": {"input_tokens": 1}});
        let message = serde_json::from_value(message).unwrap();
        let unknown = serde_json::from_value(json!({"type": "new_event", "a": [1]})).unwrap();
        for event in [
            ModelEvent::Retry(retry),
            ModelEvent::Fallback(Fallback {
                from: "a".into(),
                to: "b".into(),
                trigger: FallbackTrigger::LastResort,
            }),
            ModelEvent::Named("req_1".into()),
            ModelEvent::Whole(message),
            ModelEvent::Stream(unknown),
        ] {
            let written = write_event(&event).to_string();
            let read = read_event(serde_json::from_str(&written).unwrap()).unwrap();
            assert_eq!(read, event, "{written}");
        }
    }

    #[test]
    fn errors_are_read_back_as_they_were_written() {
        for error in [
            ModelError::Status {
                status: 429,
                kind: "rate_limit_error".into(),
                message: "m".into(),
            },
            ModelError::Connection("c".into()),
            ModelError::Broken("b".into()),
            ModelError::Protocol("p".into()),
            ModelError::TooLarge("t".into()),
            ModelError::NotLoggedIn,
        ] {
            let end = json!(ExchangeEnd::Error(RecordedError::from(&error))).to_string();
            let ExchangeEnd::Error(failure) = serde_json::from_str(&end).unwrap() else {
                panic!("{end}")
            };
            assert_eq!(ModelError::from(failure), error, "{end}");
        }
    }
}
