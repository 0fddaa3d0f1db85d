//! The properties of each event: the field for matchers, and what objections and plain output mean.
//!
//! Hooks can be registered for every event of the protocol. Those for [`WITHOUT_OCCASION`] never run.

use std::time::Duration;

use ostler_proto::hook::HookEvent;

/// Events that never happen in this version: it creates no worktrees and has no teams of agents.
pub(super) const WITHOUT_OCCASION: &[HookEvent] =
    &[HookEvent::TeammateIdle, HookEvent::WorktreeCreate, HookEvent::WorktreeRemove];

/// The field that a matcher is compared with. Every matcher fits events without one.
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

/// Whether hooks guard something here: a hook that gives no answer counts as an objection.
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

/// Whether output that is not JSON is text for the model. Before a compaction it is an instruction for the summary.
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

/// Whether a prompt hook can guard this event. At other events a no could stop nothing.
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

/// The timeout of a hook from settings that sets none. It is short where the user waits, for a prompt to be accepted or
/// a program to end, and long around tool calls, where tests and linters run.
pub(super) fn default_timeout(event: &HookEvent, kind: &str) -> Duration {
    Duration::from_secs(match event {
        _ if kind == "prompt" => 30,
        HookEvent::UserPromptSubmit | HookEvent::PreModelSwitch | HookEvent::PostModelSwitch => 30,
        HookEvent::SessionEnd | HookEvent::MessageDisplay => 10,
        _ => 600,
    })
}
