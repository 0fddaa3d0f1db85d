//! `user`: prompts on the way in; tool results, synthetic prompts and replays on the way out.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::api::{Content, Role};
use crate::{AgentId, Extra, SessionId, ToolUseId, UnknownObject, Uuid};

/// `user`: a message with the role of the user.
///
/// On stdin only `message` is needed. On stdout there is one frame per tool result.
///
/// ```
/// use ostler_proto::message::User;
///
/// let line = serde_json::to_string(&User::prompt("hello")).unwrap();
/// assert_eq!(
///     line,
///     r#"{"message":{"role":"user","content":"hello"},"parent_tool_use_id":null,"session_id":""}"#
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Wire)]
pub struct User {
    /// Role and content.
    pub message: UserContent,
    /// The call of the subagent this belongs to; `None` in the main conversation.
    #[wire(nullable)]
    pub parent_tool_use_id: Option<ToolUseId>,
    /// The conversation. Hosts send `""` or `"default"`; engines ignore it.
    pub session_id: Option<SessionId>,
    /// This message. An engine takes over the one a host gives.
    pub uuid: Option<Uuid>,
    /// When it was made (RFC 3339).
    pub timestamp: Option<String>,
    /// The tool's structured output, or a string `Error: …`. See [`crate::tool::ToolOutput`].
    pub tool_use_result: Option<Value>,
    /// How each tool result in the message came about.
    pub tool_result_meta: Option<Vec<ToolResultMeta>>,
    /// True for a prompt the engine wrote itself, such as a stop hook's feedback.
    #[wire(name = "isSynthetic")]
    pub is_synthetic: Option<bool>,
    /// True for an echo of a prompt, or of a local command's output.
    #[wire(name = "isReplay")]
    pub is_replay: Option<bool>,
    /// When a queued prompt is started.
    pub priority: Option<Priority>,
    /// What caused it.
    pub origin: Option<Origin>,
    /// `false`: append to the conversation without starting a turn.
    #[wire(name = "shouldQuery")]
    pub should_query: Option<bool>,
    /// `true`: take the text as it is, without `@file` or slash expansion.
    pub client_composed: Option<bool>,
    /// Pasted blocks that the text refers to.
    pub pasted_content: Option<Vec<Content>>,
    /// Pasted texts in the prompt.
    pub inline_pastes: Option<Vec<String>>,
    /// Files attached to a replayed prompt.
    pub file_attachments: Option<Vec<Value>>,
    /// The subagent this belongs to.
    pub agent_id: Option<AgentId>,
    /// Its type.
    pub subagent_type: Option<String>,
    /// What it was asked to do.
    pub task_description: Option<String>,
    /// The refused message that this replaces.
    pub refused_message_id: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

impl From<&str> for User {
    fn from(text: &str) -> Self {
        Self::prompt(text)
    }
}

impl From<String> for User {
    fn from(text: String) -> Self {
        Self::prompt(text.as_str())
    }
}

impl User {
    /// A prompt as a host sends it.
    pub fn prompt(content: impl Into<Content>) -> Self {
        Self::new(content.into(), Some(SessionId::default()))
    }

    /// A message with only content and session.
    pub fn new(content: Content, session_id: Option<SessionId>) -> Self {
        let message = UserContent { content: Some(content), ..UserContent::default() };
        Self { message, session_id, ..Self::default() }
    }
}

/// Role and content of a `user` message.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
pub struct UserContent {
    /// Always `user`; anything else is refused by engines.
    pub role: Role,
    /// Text, images, documents, tool results.
    pub content: Option<Content>,
    /// Unknown fields.
    pub extra: Extra,
}

/// When a queued prompt is started.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum Priority {
    /// At once, into the running turn.
    Now,
    /// As the next turn.
    Next,
    /// After everything else.
    Later,
    /// A priority this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// How a tool result came about.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ToolResultMeta {
    /// The call.
    pub id: ToolUseId,
    /// Why the tool did not run, if it did not.
    pub non_execution_kind: Option<String>,
    /// Who decided that it may run.
    pub permission_decision: Option<PermissionDecisionMeta>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Who decided on a tool call, and how.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct PermissionDecisionMeta {
    /// `accept` or `reject`.
    pub decision: String,
    /// Who: a rule, a hook, the host.
    pub source: Option<String>,
    /// The kind of reason.
    pub reason_type: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What caused a message or a turn.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Origin {
    /// A person.
    Human(PlainOrigin),
    /// An MCP server's channel.
    Channel(ChannelOrigin),
    /// Another session.
    Peer(PeerOrigin),
    /// A background task that ended.
    TaskNotification(TaskNotificationOrigin),
    /// A coordinating agent.
    Coordinator(PlainOrigin),
    /// Unknown.
    Unclassified(PlainOrigin),
    /// An observing agent.
    Observer(ObserverOrigin),
    /// The engine, continuing by itself.
    AutoContinuation(PlainOrigin),
    /// Something an observer did.
    ObserverActivity(PlainOrigin),
    /// An origin this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// An origin without further fields.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct PlainOrigin {
    /// Unknown fields.
    pub extra: Extra,
}

/// `channel`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ChannelOrigin {
    /// The MCP server.
    pub server: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `peer`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PeerOrigin {
    /// The sender.
    pub from: String,
    /// Whether the sender asks for permissions: `bypass` or `prompting`.
    pub from_mode: Option<String>,
    /// The sender's name.
    pub name: Option<String>,
    /// Its session.
    pub from_session: Option<SessionId>,
    /// The task it runs in.
    pub sender_task_id: Option<String>,
    /// What it sent.
    pub body: Option<String>,
    /// Its process, if that could be checked.
    pub verified_peer_pid: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `task-notification`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskNotificationOrigin {
    /// What kind of notification it is.
    pub subkind: Option<String>,
    /// Why a schedule fired.
    pub fire_reason: Option<String>,
    /// The run it belongs to.
    pub run_id: Option<String>,
    /// What kind of task it was.
    pub producer: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `observer`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ObserverOrigin {
    /// The observer.
    pub from: String,
    /// The task it runs in.
    pub sender_task_id: String,
    /// Unknown fields.
    pub extra: Extra,
}
