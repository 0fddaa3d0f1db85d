//! A frame is one line on stdin ([`ToEngine`]) or stdout ([`ToHost`]).

use ostler_proto_derive::Wire;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control::{
    AskEngine, AskHost, ControlCancelRequest, ControlRequest, ControlResponse, Response,
};
use crate::message::{delta, *};
use crate::wire::WireObject;
use crate::{DecodeError, UnknownObject, api};

/// What a host sends to an engine, on the engine's stdin.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type", tag_optional)]
#[non_exhaustive]
pub enum ToEngine {
    /// A prompt.
    User(Box<User>),
    /// The host asks.
    ControlRequest(ControlRequest<AskEngine>),
    /// The host answers.
    ControlResponse(ControlResponse),
    /// The host no longer wants an answer.
    ControlCancelRequest(ControlCancelRequest),
    /// The host is still there.
    KeepAlive(KeepAlive),
    /// The host changes the engine's environment.
    UpdateEnvironmentVariables(UpdateEnvironmentVariables),
    /// A frame this version does not know. Engines ignore it.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// What an engine sends to its host, on the engine's stdout.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type", tag_optional)]
#[non_exhaustive]
pub enum ToHost {
    /// A report of the engine.
    System(System),
    /// A finished block of the model.
    Assistant(Box<Assistant>),
    /// A tool answers, or a prompt is echoed.
    User(Box<User>),
    /// A turn ends.
    Result(Box<TurnResult>),
    /// A streamed event of the model.
    StreamEvent(Box<StreamEventMessage>),
    /// A tool is still running.
    ToolProgress(ToolProgress),
    /// A login is in progress.
    AuthStatus(AuthStatus),
    /// Several tool calls in one sentence.
    ToolUseSummary(ToolUseSummary),
    /// A subscription's limit changed.
    RateLimitEvent(Box<RateLimitEvent>),
    /// What the user might ask next.
    PromptSuggestion(PromptSuggestion),
    /// The conversation was cleared.
    ConversationReset(ConversationReset),
    /// The state of a prompt.
    CommandLifecycle(CommandLifecycle),
    /// Lines just written to a session file.
    TranscriptMirror(TranscriptMirror),
    /// The goal of a remote session.
    ActiveGoal(ActiveGoal),
    /// How close compaction is.
    AutocompactState(AutocompactState),
    /// Text in the old reduced output mode.
    StreamlinedText(StreamlinedText),
    /// Tool calls in the old reduced output mode.
    StreamlinedToolUseSummary(StreamlinedToolUseSummary),
    /// The engine is still there.
    KeepAlive(KeepAlive),
    /// The engine asks.
    ControlRequest(ControlRequest<AskHost>),
    /// The engine answers.
    ControlResponse(ControlResponse),
    /// The engine no longer wants an answer.
    ControlCancelRequest(ControlCancelRequest),
    /// A frame this version does not know. Hosts pass it on.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// A frame of either direction: decodes from and encodes to a line.
pub trait Frame: WireObject + Serialize + DeserializeOwned {
    /// Reads a frame from one line, with or without its line ending.
    ///
    /// ```
    /// use ostler_proto::frame::{Frame, ToHost};
    ///
    /// // Unknown is kept, malformed is reported.
    /// assert!(matches!(ToHost::from_line(r#"{"type":"new_thing","a":1}"#), Ok(ToHost::Unknown(_))));
    /// let error = ToHost::from_line(r#"{"type":"system","subtype":"init","cwd":7}"#).unwrap_err();
    /// assert!(error.to_string().contains("system.init.cwd"), "{error}");
    /// ```
    ///
    /// # Errors
    /// When the line is not a JSON object, or a frame of a known type is malformed; the error names the field.
    fn from_line(line: &str) -> Result<Self, DecodeError> {
        read_line(line)
    }

    /// The frame as one line, ending in `\n`.
    fn to_line(&self) -> String {
        let mut line =
            serde_json::to_string(self).expect("wire types have string keys and finite numbers");
        line.push('\n');
        line
    }

    /// One line for a debug log: the types, without any content.
    fn summary(&self) -> String;
}

impl Frame for ToEngine {
    fn summary(&self) -> String {
        let detail = match self {
            Self::ControlRequest(request) => request.request.tag(),
            Self::ControlResponse(response) => response.response.tag(),
            _ => None,
        };
        joined([self.tag(), detail, None])
    }
}

impl Frame for ToHost {
    fn from_line(line: &str) -> Result<Self, DecodeError> {
        // By far the most frequent frame.
        match delta::read(line) {
            Some(event) => Ok(Self::StreamEvent(event)),
            None => read_line(line),
        }
    }

    fn summary(&self) -> String {
        let (detail, more) = match self {
            Self::System(system) => (system.tag(), None),
            Self::Result(result) => (Some(result.subtype.as_str()), None),
            Self::Assistant(frame) => {
                (frame.message.content.first().and_then(api::ContentBlock::tag), None)
            }
            Self::User(frame) => match &frame.message.content {
                Some(api::Content::Blocks(blocks)) => {
                    (blocks.first().and_then(api::ContentBlock::tag), None)
                }
                _ => (None, None),
            },
            Self::StreamEvent(frame) => (frame.event.tag(), delta_tag(&frame.event)),
            Self::ToolProgress(progress) => (Some(progress.tool_name.as_str()), None),
            Self::ControlRequest(request) => (request.request.tag(), tool_name(&request.request)),
            Self::ControlResponse(ControlResponse { response, .. }) => {
                (Response::tag(response), None)
            }
            _ => (None, None),
        };
        joined([self.tag(), detail, more])
    }
}

fn read_line<F: Frame>(line: &str) -> Result<F, DecodeError> {
    serde_json::from_str(line).or_else(|error| DecodeError::look_closer(line, &error))
}

fn delta_tag(event: &api::StreamEvent) -> Option<&str> {
    match event {
        api::StreamEvent::ContentBlockDelta(delta) => delta.delta.tag(),
        api::StreamEvent::ContentBlockStart(start) => start.content_block.tag(),
        _ => None,
    }
}

fn tool_name(request: &AskHost) -> Option<&str> {
    match request {
        AskHost::CanUseTool(request) => Some(&request.tool_name),
        _ => None,
    }
}

fn joined(words: [Option<&str>; 3]) -> String {
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Frame, ToEngine, ToHost};

    #[test]
    fn a_summary_names_the_types() {
        for (line, summary) in [
            (r#"{"type":"keep_alive"}"#, "keep_alive"),
            (r#"{"type":"system","subtype":"new_thing"}"#, "system new_thing"),
            (
                r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"secret"}},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}"#,
                "stream_event content_block_delta text_delta",
            ),
            (
                r#"{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}"#,
                "control_request can_use_tool Bash",
            ),
            ("{}", ""),
        ] {
            assert_eq!(ToHost::from_line(line).unwrap().summary(), summary);
        }
        let line =
            r#"{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}"#;
        assert_eq!(ToEngine::from_line(line).unwrap().summary(), "control_request interrupt");
    }
}
