//! [`Message`]: what a host reads from a session.

use ostler_proto::api::{ContentBlock, Delta, StreamEvent, ToolUseBlock};
use ostler_proto::frame::ToHost;
use ostler_proto::message::{
    Assistant, StreamEventMessage, System, ToolProgress, TurnResult, User,
};
use ostler_proto::{SessionId, ToolUseId};

/// A message of a session.
///
/// Rare and new kinds arrive as [`Message::Other`], with all their fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// One finished block of the model's response: text, or a tool call.
    Assistant(Box<Assistant>),
    /// A message on the user's side, usually the result of a tool.
    User(Box<User>),
    /// A report of the session about itself; a turn begins with [`System::Init`].
    System(System),
    /// The result of a turn, which ends it.
    Result(Box<TurnResult>),
    /// An event of the response as it is written; only with partial messages on.
    StreamEvent(Box<StreamEventMessage>),
    /// A tool is still running.
    ToolProgress(ToolProgress),
    /// Anything else.
    Other(Box<ToHost>),
}

impl Message {
    /// The text of the model in this message, if there is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Assistant(it) => it.message.content.iter().find_map(ContentBlock::as_text),
            _ => None,
        }
    }

    /// The tool calls in this message.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUseBlock> {
        let content = match self {
            Self::Assistant(it) => it.message.content.as_slice(),
            _ => &[],
        };
        content.iter().filter_map(ContentBlock::as_tool_use)
    }

    /// The text delta, if this is one.
    pub fn text_delta(&self) -> Option<&str> {
        let Self::StreamEvent(event) = self else { return None };
        match &event.event {
            StreamEvent::ContentBlockDelta(delta) => match &delta.delta {
                Delta::TextDelta(delta) => Some(&delta.text),
                _ => None,
            },
            _ => None,
        }
    }

    /// The result, if this is one.
    pub fn as_result(&self) -> Option<&TurnResult> {
        match self {
            Self::Result(result) => Some(result),
            _ => None,
        }
    }

    /// The call that started the subagent of this message; `None` in the main conversation.
    pub fn parent_tool_use_id(&self) -> Option<&ToolUseId> {
        match self {
            Self::Assistant(message) => message.parent_tool_use_id.as_ref(),
            Self::User(message) => message.parent_tool_use_id.as_ref(),
            Self::StreamEvent(message) => message.parent_tool_use_id.as_ref(),
            Self::ToolProgress(message) => message.parent_tool_use_id.as_ref(),
            _ => None,
        }
    }

    /// The session of the message, if the message names it.
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::Assistant(message) => Some(&message.session_id),
            Self::User(message) => message.session_id.as_ref(),
            Self::Result(message) => Some(&message.session_id),
            Self::StreamEvent(message) => Some(&message.session_id),
            Self::System(System::Init(init)) => Some(&init.session_id),
            _ => None,
        }
    }

    /// The message in a frame; `None` for requests, responses and keep-alive frames.
    pub fn from_frame(frame: ToHost) -> Option<Self> {
        Some(match frame {
            ToHost::Assistant(message) => Self::Assistant(message),
            ToHost::User(message) => Self::User(message),
            ToHost::System(message) => Self::System(message),
            ToHost::Result(message) => Self::Result(message),
            ToHost::StreamEvent(message) => Self::StreamEvent(message),
            ToHost::ToolProgress(message) => Self::ToolProgress(message),
            ToHost::KeepAlive(_)
            | ToHost::ControlRequest(_)
            | ToHost::ControlResponse(_)
            | ToHost::ControlCancelRequest(_) => return None,
            other => Self::Other(Box::new(other)),
        })
    }

    /// The frame of the message, for programs that store it or forward it.
    pub fn into_frame(self) -> ToHost {
        match self {
            Self::Assistant(message) => ToHost::Assistant(message),
            Self::User(message) => ToHost::User(message),
            Self::System(message) => ToHost::System(message),
            Self::Result(message) => ToHost::Result(message),
            Self::StreamEvent(message) => ToHost::StreamEvent(message),
            Self::ToolProgress(message) => ToHost::ToolProgress(message),
            Self::Other(frame) => *frame,
        }
    }
}
