//! Inputs of hooks: one struct per event.

use ostler_proto_derive::Wire;

use super::base::{HasBase, HookBase};
use super::*;
use crate::UnknownObject;

/// The input of a hook; the variant is the event.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "hook_event_name", tree, rename_all = "PascalCase")]
#[non_exhaustive]
pub enum HookInput {
    /// A tool is about to run.
    PreToolUse(PreToolUseInput),
    /// A tool has run.
    PostToolUse(PostToolUseInput),
    /// A tool has failed.
    PostToolUseFailure(PostToolUseFailureInput),
    /// All tool calls of one model reply are done.
    PostToolBatch(PostToolBatchInput),
    /// The agent wants the user's attention.
    Notification(NotificationInput),
    /// A prompt arrived and was not sent to the model yet.
    UserPromptSubmit(UserPromptSubmitInput),
    /// A command in a prompt was replaced by its text.
    UserPromptExpansion(UserPromptExpansionInput),
    /// A session begins, also after a resume or a compaction.
    SessionStart(SessionStartInput),
    /// A session is over.
    SessionEnd(SessionEndInput),
    /// The model has finished its turn.
    Stop(StopInput),
    /// The turn ended because the model could not be reached or refused.
    StopFailure(StopFailureInput),
    /// A subagent begins.
    SubagentStart(SubagentStartInput),
    /// A subagent has finished.
    SubagentStop(SubagentStopInput),
    /// The conversation is about to be summarised.
    PreCompact(PreCompactInput),
    /// The conversation was summarised.
    PostCompact(PostCompactInput),
    /// The session is about to change its model.
    PreModelSwitch(PreModelSwitchInput),
    /// The session has changed its model.
    PostModelSwitch(PostModelSwitchInput),
    /// A tool call requires approval.
    PermissionRequest(PermissionRequestInput),
    /// A tool was not allowed to run.
    PermissionDenied(PermissionDeniedInput),
    /// The agent prepares or maintains its working directory.
    Setup(SetupInput),
    /// A member of an agent team has nothing to do.
    TeammateIdle(TeammateIdleInput),
    /// An entry was added to the task list.
    TaskCreated(TaskCreatedInput),
    /// An entry of the task list is done.
    TaskCompleted(TaskCompletedInput),
    /// An MCP server asks the user for input.
    Elicitation(ElicitationInput),
    /// The user's reply to an MCP server is about to be sent.
    ElicitationResult(ElicitationResultInput),
    /// A settings file changed.
    ConfigChange(ConfigChangeInput),
    /// A git worktree is requested.
    WorktreeCreate(WorktreeCreateInput),
    /// A git worktree is no longer needed.
    WorktreeRemove(WorktreeRemoveInput),
    /// A file with instructions was read.
    InstructionsLoaded(InstructionsLoadedInput),
    /// The working directory changed.
    CwdChanged(CwdChangedInput),
    /// A watched file changed.
    FileChanged(FileChangedInput),
    /// A directory was added to those the agent may use.
    DirectoryAdded(DirectoryAddedInput),
    /// A part of the reply is about to be shown.
    MessageDisplay(MessageDisplayInput),
    /// Another kind, kept whole.
    #[wire(other)]
    Unknown(UnknownObject),
}

impl HookInput {
    /// The event. One that this version does not know comes as [`HookEvent::Other`].
    pub fn event(&self) -> HookEvent {
        HookEvent::from(self.tag().unwrap_or_default())
    }

    /// The fields that all events have.
    pub fn base(&self) -> HookBase<'_> {
        match self {
            Self::PreToolUse(input) => input.base(),
            Self::PostToolUse(input) => input.base(),
            Self::PostToolUseFailure(input) => input.base(),
            Self::PostToolBatch(input) => input.base(),
            Self::Notification(input) => input.base(),
            Self::UserPromptSubmit(input) => input.base(),
            Self::UserPromptExpansion(input) => input.base(),
            Self::SessionStart(input) => input.base(),
            Self::SessionEnd(input) => input.base(),
            Self::Stop(input) => input.base(),
            Self::StopFailure(input) => input.base(),
            Self::SubagentStart(input) => input.base(),
            Self::SubagentStop(input) => input.base(),
            Self::PreCompact(input) => input.base(),
            Self::PostCompact(input) => input.base(),
            Self::PreModelSwitch(input) => input.base(),
            Self::PostModelSwitch(input) => input.base(),
            Self::PermissionRequest(input) => input.base(),
            Self::PermissionDenied(input) => input.base(),
            Self::Setup(input) => input.base(),
            Self::TeammateIdle(input) => input.base(),
            Self::TaskCreated(input) => input.base(),
            Self::TaskCompleted(input) => input.base(),
            Self::Elicitation(input) => input.base(),
            Self::ElicitationResult(input) => input.base(),
            Self::ConfigChange(input) => input.base(),
            Self::WorktreeCreate(input) => input.base(),
            Self::WorktreeRemove(input) => input.base(),
            Self::InstructionsLoaded(input) => input.base(),
            Self::CwdChanged(input) => input.base(),
            Self::FileChanged(input) => input.base(),
            Self::DirectoryAdded(input) => input.base(),
            Self::MessageDisplay(input) => input.base(),
            Self::Unknown(object) => HookBase::of_unknown(object),
        }
    }

    /// The session; empty only if an unknown event does not have it.
    pub fn session_id(&self) -> &str {
        self.base().session_id
    }

    /// The working directory; empty only if an unknown event does not have it.
    pub fn cwd(&self) -> &str {
        self.base().cwd
    }

    /// The tool's name, for the events that are about one tool call.
    pub fn tool_name(&self) -> Option<&str> {
        match self {
            Self::PreToolUse(input) => Some(&input.tool_name),
            Self::PostToolUse(input) => Some(&input.tool_name),
            Self::PostToolUseFailure(input) => Some(&input.tool_name),
            Self::PermissionRequest(input) => Some(&input.tool_name),
            Self::PermissionDenied(input) => Some(&input.tool_name),
            _ => None,
        }
    }
}
