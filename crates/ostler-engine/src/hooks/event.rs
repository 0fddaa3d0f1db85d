//! What is special about each event: what a matcher is compared with, and what objections and plain output mean.
//!
//! Hooks can be registered for every event of the protocol. Those of [`WITHOUT_OCCASION`] are kept and never run.

use std::time::Duration;

use ostler_proto::hook::HookEvent;

/// Events that nothing in this version sets off: it makes no worktrees, and there are no teams of agents.
pub(super) const WITHOUT_OCCASION: &[HookEvent] =
    &[HookEvent::TeammateIdle, HookEvent::WorktreeCreate, HookEvent::WorktreeRemove];

/// The field a matcher is compared with. Events without one are for every hook.
pub(super) fn subject(event: &HookEvent) -> Option<&'static str> {
    match event {
        HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::PermissionRequest
        | HookEvent::PermissionDenied => Some("tool_name"),
        HookEvent::SessionStart | HookEvent::ConfigChange | HookEvent::DirectoryAdded => {
            Some("source")
        }
        HookEvent::SessionEnd => Some("reason"),
        HookEvent::Notification => Some("notification_type"),
        HookEvent::SubagentStart | HookEvent::SubagentStop => Some("agent_type"),
        HookEvent::PreCompact | HookEvent::PostCompact | HookEvent::Setup => Some("trigger"),
        HookEvent::StopFailure => Some("error"),
        HookEvent::InstructionsLoaded => Some("load_reason"),
        HookEvent::UserPromptExpansion => Some("command_name"),
        HookEvent::Elicitation | HookEvent::ElicitationResult => Some("mcp_server_name"),
        HookEvent::PreModelSwitch | HookEvent::PostModelSwitch => Some("to_model"),
        HookEvent::FileChanged => Some("file_path"),
        _ => None,
    }
}

/// Whether hooks stand guard here: one that gives no answer then counts as an objection.
pub(super) fn is_guarded(event: &HookEvent) -> bool {
    matches!(
        event,
        HookEvent::PreToolUse
            | HookEvent::PermissionRequest
            | HookEvent::UserPromptSubmit
            | HookEvent::UserPromptExpansion
            | HookEvent::PreModelSwitch
            | HookEvent::ConfigChange
            | HookEvent::Elicitation
            | HookEvent::ElicitationResult
    )
}

/// Whether an objection (exit code 2) can change anything. Elsewhere it is only reported to the user.
pub(super) fn takes_objections(event: &HookEvent) -> bool {
    !matches!(
        event,
        HookEvent::Notification
            | HookEvent::SessionStart
            | HookEvent::SessionEnd
            | HookEvent::Setup
            | HookEvent::SubagentStart
            | HookEvent::StopFailure
            | HookEvent::PermissionDenied
            | HookEvent::PostCompact
            | HookEvent::PostModelSwitch
            | HookEvent::InstructionsLoaded
            | HookEvent::CwdChanged
            | HookEvent::FileChanged
            | HookEvent::DirectoryAdded
            | HookEvent::WorktreeRemove
            | HookEvent::MessageDisplay
    )
}

/// Whether output that is not JSON is text for the model. Before a compaction it says what the summary should keep.
pub(super) fn takes_text(event: &HookEvent) -> bool {
    matches!(
        event,
        HookEvent::UserPromptSubmit
            | HookEvent::UserPromptExpansion
            | HookEvent::SessionStart
            | HookEvent::PreCompact
            | HookEvent::PostModelSwitch
    )
}

/// Whether a model can be asked whether to continue. Elsewhere there is nothing that a no could stop.
pub(super) fn can_be_judged(event: &HookEvent) -> bool {
    matches!(
        event,
        HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::PostToolUseFailure
            | HookEvent::PostToolBatch
            | HookEvent::PermissionRequest
            | HookEvent::PermissionDenied
            | HookEvent::UserPromptSubmit
            | HookEvent::UserPromptExpansion
            | HookEvent::Stop
            | HookEvent::SubagentStop
            | HookEvent::TaskCreated
            | HookEvent::TaskCompleted
            | HookEvent::TeammateIdle
    )
}

/// Whether hooks receive the permission mode.
pub(super) fn has_mode(event: &HookEvent) -> bool {
    !matches!(
        event,
        HookEvent::SubagentStart
            | HookEvent::SessionEnd
            | HookEvent::PreCompact
            | HookEvent::Setup
            | HookEvent::ConfigChange
            | HookEvent::CwdChanged
            | HookEvent::FileChanged
            | HookEvent::DirectoryAdded
            | HookEvent::PreModelSwitch
            | HookEvent::PostModelSwitch
            | HookEvent::Elicitation
            | HookEvent::ElicitationResult
            | HookEvent::TaskCreated
            | HookEvent::MessageDisplay
            | HookEvent::Notification
            | HookEvent::SessionStart
            | HookEvent::StopFailure
            | HookEvent::InstructionsLoaded
            | HookEvent::PostCompact
    )
}

/// How long a hook from settings may take unless it says otherwise. The user waits for a prompt to be accepted and for
/// a program to end; tests and linters around a tool call take their time.
pub(super) fn default_timeout(event: &HookEvent, kind: &str) -> Duration {
    Duration::from_secs(match event {
        _ if kind == "prompt" => 30,
        HookEvent::UserPromptSubmit | HookEvent::PreModelSwitch | HookEvent::PostModelSwitch => 30,
        HookEvent::SessionEnd | HookEvent::MessageDisplay => 10,
        _ => 600,
    })
}
