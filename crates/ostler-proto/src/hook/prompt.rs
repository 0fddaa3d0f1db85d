//! Inputs of the hooks around prompts and what the user sees.

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::base::with_base;

with_base! {
    /// A prompt arrived.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct UserPromptSubmitInput {
        /// Its text.
        pub prompt: String,
        /// Its sender. Newer peers only.
        pub source: Option<PromptSource>,
        /// The session's title. Newer peers only.
        pub session_title: Option<String>,
    }
}

/// The sender of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum PromptSource {
    /// A person.
    User,
    /// A host program.
    Sdk,
    /// The agent itself.
    System,
    /// A loop that wakes up.
    LoopWakeup,
    /// A wake-up the model asked for.
    ScheduleWakeup,
    /// Something that is being watched.
    PollEvent,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// A command in a prompt was replaced by its text.
    #[wire(new(expansion_type, command_name))]
    #[non_exhaustive]
    pub struct UserPromptExpansionInput {
        /// What kind of command.
        pub expansion_type: ExpansionType,
        /// The command, without the slash.
        pub command_name: String,
        /// Its arguments.
        pub command_args: String,
        /// Where the command is defined.
        pub command_source: Option<String>,
        /// The prompt as it was typed.
        pub prompt: String,
    }
}

/// What was expanded.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ExpansionType {
    /// A slash command.
    SlashCommand,
    /// A prompt of an MCP server.
    McpPrompt,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// The agent wants the user's attention.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct NotificationInput {
        /// The text.
        pub message: String,
        /// A heading.
        pub title: Option<String>,
        /// What it is about, such as `permission_prompt`.
        pub notification_type: String,
    }
}

with_base! {
    /// A part of the reply is about to be shown.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct MessageDisplayInput {
        /// The turn.
        pub turn_id: String,
        /// The message the piece belongs to.
        pub message_id: String,
        /// The piece's number within the message.
        pub index: u64,
        /// Whether it is the last one.
        pub r#final: bool,
        /// Its text.
        pub delta: String,
    }
}

with_base! {
    /// An MCP server asks the user for input.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct ElicitationInput {
        /// The server.
        pub mcp_server_name: String,
        /// The question.
        pub message: String,
        /// How it wants to be answered.
        pub mode: Option<ElicitationMode>,
        /// The page to open.
        pub url: Option<String>,
        /// The question's id.
        pub elicitation_id: Option<String>,
        /// The JSON schema of the answer.
        pub requested_schema: Option<Value>,
    }
}

with_base! {
    /// The user's reply to an MCP server is about to be sent.
    #[wire(new(mcp_server_name, action))]
    #[non_exhaustive]
    pub struct ElicitationResultInput {
        /// The server.
        pub mcp_server_name: String,
        /// The question's id.
        pub elicitation_id: Option<String>,
        /// How it wanted to be answered.
        pub mode: Option<ElicitationMode>,
        /// What the user did.
        pub action: ElicitationAction,
        /// The answer.
        pub content: Option<Value>,
    }
}

/// How an MCP server wants to be answered.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// By fields to fill in.
    Form,
    /// On a separate page.
    Url,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// The action on an MCP server's question.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ElicitationAction {
    /// It is answered.
    Accept,
    /// The user refuses.
    Decline,
    /// It is dismissed without a choice.
    Cancel,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}
