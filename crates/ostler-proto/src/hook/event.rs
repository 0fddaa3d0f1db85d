//! The events a hook can be attached to, and how a host attaches one.

use ostler_proto_derive::Wire;

use crate::{Extra, Num};

/// An event at which hooks are called.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(rename_all = "PascalCase")]
#[non_exhaustive]
pub enum HookEvent {
    /// A tool is about to run.
    PreToolUse,
    /// A tool has run.
    PostToolUse,
    /// A tool has failed; sent instead of [`Self::PostToolUse`].
    PostToolUseFailure,
    /// All tool calls of one model reply are done.
    PostToolBatch,
    /// The agent wants the user's attention.
    Notification,
    /// A prompt arrived and was not sent to the model yet.
    UserPromptSubmit,
    /// A command in a prompt was replaced by its text.
    UserPromptExpansion,
    /// A session begins, also after a resume or a compaction.
    SessionStart,
    /// A session is over.
    SessionEnd,
    /// The model has finished its turn.
    Stop,
    /// The turn ended because the model could not be reached or refused.
    StopFailure,
    /// A subagent begins.
    SubagentStart,
    /// A subagent has finished.
    SubagentStop,
    /// The conversation is about to be summarised.
    PreCompact,
    /// The conversation was summarised.
    PostCompact,
    /// The session is about to change its model.
    PreModelSwitch,
    /// The session has changed its model.
    PostModelSwitch,
    /// A tool call requires approval.
    PermissionRequest,
    /// A tool was not allowed to run.
    PermissionDenied,
    /// The agent prepares or maintains its working directory.
    Setup,
    /// A member of an agent team has nothing to do.
    TeammateIdle,
    /// An entry was added to the task list.
    TaskCreated,
    /// An entry of the task list is done.
    TaskCompleted,
    /// An MCP server asks the user for input.
    Elicitation,
    /// The user's reply to an MCP server is about to be sent.
    ElicitationResult,
    /// A settings file changed.
    ConfigChange,
    /// A git worktree is requested.
    WorktreeCreate,
    /// A git worktree is no longer needed.
    WorktreeRemove,
    /// A file with instructions was read.
    InstructionsLoaded,
    /// The working directory changed.
    CwdChanged,
    /// A watched file changed.
    FileChanged,
    /// A directory was added to those the agent may use.
    DirectoryAdded,
    /// A part of the reply is about to be shown.
    MessageDisplay,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

impl HookEvent {
    /// Every event this version knows.
    pub const ALL: &[Self] = &[
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PostToolBatch,
        Self::Notification,
        Self::UserPromptSubmit,
        Self::UserPromptExpansion,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::StopFailure,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::PostCompact,
        Self::PreModelSwitch,
        Self::PostModelSwitch,
        Self::PermissionRequest,
        Self::PermissionDenied,
        Self::Setup,
        Self::TeammateIdle,
        Self::TaskCreated,
        Self::TaskCompleted,
        Self::Elicitation,
        Self::ElicitationResult,
        Self::ConfigChange,
        Self::WorktreeCreate,
        Self::WorktreeRemove,
        Self::InstructionsLoaded,
        Self::CwdChanged,
        Self::FileChanged,
        Self::DirectoryAdded,
        Self::MessageDisplay,
    ];
}

/// Callbacks registered for one event, as `initialize` carries them.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct HookMatcher {
    /// Which tools (or, for other events, which kinds) it is for. Absent, `null` or `*` means all.
    pub matcher: Option<String>,
    /// The names under which the host will be called.
    pub hook_callback_ids: Vec<String>,
    /// Seconds to wait for an answer.
    pub timeout: Option<Num>,
    /// What happens when the callback fails. Newer peers only.
    pub on_failure: Option<OnFailure>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a failing callback does to the tool call it was asked about.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum OnFailure {
    /// The call continues as if there were no hook.
    Continue,
    /// The call is refused.
    Block,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}
