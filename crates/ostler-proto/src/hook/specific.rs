//! The part of a hook's answer that depends on the event.

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::{ElicitationAction, HookEvent};
use crate::permission::PermissionUpdate;
use crate::{Extra, UnknownObject};

/// The part of a hook's answer that depends on the event; the variant must be the event asked about.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "hookEventName", tree, rename_all = "PascalCase")]
#[non_exhaustive]
pub enum HookSpecificOutput {
    /// The decision on a tool call, and its input.
    PreToolUse(PreToolUseOutput),
    /// Changes of a tool's result.
    PostToolUse(PostToolUseOutput),
    /// Context for a failed tool call.
    PostToolUseFailure(PostToolUseFailureOutput),
    /// Context for a batch of tool results.
    PostToolBatch(PostToolBatchOutput),
    /// Context for the event.
    Notification(NotificationOutput),
    /// Context for a prompt.
    UserPromptSubmit(UserPromptSubmitOutput),
    /// Context for an expanded command.
    UserPromptExpansion(UserPromptExpansionOutput),
    /// What a session starts with.
    SessionStart(SessionStartOutput),
    /// Context for the event.
    Setup(SetupOutput),
    /// Context for the event.
    Stop(StopOutput),
    /// Context for a subagent.
    SubagentStart(SubagentStartOutput),
    /// Context for the event.
    SubagentStop(SubagentStopOutput),
    /// The decision on a change of model.
    PreModelSwitch(PreModelSwitchOutput),
    /// Context for the new model.
    PostModelSwitch(PostModelSwitchOutput),
    /// The decision on a tool call.
    PermissionRequest(PermissionRequestOutput),
    /// Whether the model may retry.
    PermissionDenied(PermissionDeniedOutput),
    /// An answer instead of the user's.
    Elicitation(ElicitationOutput),
    /// A replacement for the user's answer.
    ElicitationResult(ElicitationResultOutput),
    /// What to watch from now on.
    CwdChanged(CwdChangedOutput),
    /// What to watch from now on.
    FileChanged(FileChangedOutput),
    /// Where the worktree is.
    WorktreeCreate(WorktreeCreateOutput),
    /// What to show instead.
    MessageDisplay(MessageDisplayOutput),
    /// Another kind, kept whole.
    #[wire(other)]
    Unknown(UnknownObject),
}

impl HookSpecificOutput {
    /// Text for the model to read. `None` for an event whose answer has no place for it.
    pub fn context(event: &HookEvent, text: impl Into<String>) -> Option<Self> {
        macro_rules! with_context {
            ($($name:ident => $output:ident,)*) => {
                match event {
                    $(HookEvent::$name => Self::$name($output {
                        additional_context: Some(text.into()),
                        ..$output::default()
                    }),)*
                    _ => return None,
                }
            };
        }
        Some(with_context! {
            PreToolUse => PreToolUseOutput,
            PostToolUse => PostToolUseOutput,
            PostToolUseFailure => PostToolUseFailureOutput,
            PostToolBatch => PostToolBatchOutput,
            Notification => NotificationOutput,
            UserPromptSubmit => UserPromptSubmitOutput,
            UserPromptExpansion => UserPromptExpansionOutput,
            SessionStart => SessionStartOutput,
            Setup => SetupOutput,
            Stop => StopOutput,
            SubagentStart => SubagentStartOutput,
            SubagentStop => SubagentStopOutput,
            PostModelSwitch => PostModelSwitchOutput,
        })
    }
}

/// The decision on a tool call, and its input.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PreToolUseOutput {
    /// The decision; none leaves it to the permission rules.
    pub permission_decision: Option<PermissionDecision>,
    /// Why.
    pub permission_decision_reason: Option<String>,
    /// The whole input to run it with instead.
    pub updated_input: Option<Value>,
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a hook decides about a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum PermissionDecision {
    /// It runs.
    Allow,
    /// It does not run.
    Deny,
    /// The user is asked.
    Ask,
    /// It neither runs nor fails: the turn ends and its result passes the call to the host. Newer peers only.
    Defer,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Changes of a tool's result.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PostToolUseOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Context for the classifier of the next calls. Newer peers only.
    pub classifier_context: Option<String>,
    /// The result to use instead. Newer peers only.
    pub updated_tool_output: Option<Value>,
    /// The result to use instead, of an MCP tool.
    #[wire(name = "updatedMCPToolOutput")]
    pub updated_mcp_tool_output: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for a failed tool call.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PostToolUseFailureOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for a batch of tool results.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PostToolBatchOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for a notification.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct NotificationOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for a prompt.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct UserPromptSubmitOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// A title for the session. Newer peers only.
    pub session_title: Option<String>,
    /// Keeps the prompt itself from the model. Newer peers only.
    pub suppress_original_prompt: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for an expanded command.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct UserPromptExpansionOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Keeps the prompt itself from the model.
    pub suppress_original_prompt: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a session starts with.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SessionStartOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// A first prompt. Newer peers only.
    pub initial_user_message: Option<String>,
    /// A title for the session. Newer peers only.
    pub session_title: Option<String>,
    /// Files to watch. Newer peers only.
    pub watch_paths: Option<Vec<String>>,
    /// Whether to look for skills again. Newer peers only.
    pub reload_skills: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for a setup.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SetupOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context at the end of a turn. Newer peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct StopOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for a subagent.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SubagentStartOutput {
    /// Text for its model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context at the end of a subagent. Newer peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SubagentStopOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The decision on a change of model.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PreModelSwitchOutput {
    /// The decision.
    pub permission_decision: Option<PermissionDecision>,
    /// Why.
    pub permission_decision_reason: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Context for the new model.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PostModelSwitchOutput {
    /// Text for it.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The answer to a permission request.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PermissionRequestOutput {
    /// The decision.
    pub decision: PermissionRequestDecision,
    /// Unknown fields.
    pub extra: Extra,
}

/// Whether a tool may run.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "behavior")]
#[non_exhaustive]
pub enum PermissionRequestDecision {
    /// It may.
    Allow(PermissionRequestAllow),
    /// It may not.
    Deny(PermissionRequestDeny),
    /// Another kind, kept whole.
    #[wire(other)]
    Unknown(UnknownObject),
}

impl PermissionRequestDecision {
    /// The tool may run as the model called it.
    pub fn allow() -> Self {
        Self::Allow(PermissionRequestAllow::default())
    }

    /// The tool may not run, and the model reads why.
    pub fn deny(message: impl Into<String>) -> Self {
        let message = Some(message.into());
        Self::Deny(PermissionRequestDeny { message, ..PermissionRequestDeny::default() })
    }
}

/// The tool may run.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PermissionRequestAllow {
    /// The whole input to run it with instead.
    pub updated_input: Option<Value>,
    /// Changes to the permission rules.
    pub updated_permissions: Option<Vec<PermissionUpdate>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The tool may not run.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PermissionRequestDeny {
    /// Why; the model reads it.
    pub message: Option<String>,
    /// Whether the turn ends too.
    pub interrupt: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Whether the model may retry.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct PermissionDeniedOutput {
    /// Whether it may.
    pub retry: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An answer to an MCP server instead of the user's.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct ElicitationOutput {
    /// The action on the question.
    pub action: Option<ElicitationAction>,
    /// The answer.
    pub content: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A replacement for the user's answer to an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct ElicitationResultOutput {
    /// The action on the question.
    pub action: Option<ElicitationAction>,
    /// The answer.
    pub content: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to watch after a change of directory.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct CwdChangedOutput {
    /// The files.
    pub watch_paths: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to watch after a file changed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct FileChangedOutput {
    /// The files.
    pub watch_paths: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where the worktree is.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct WorktreeCreateOutput {
    /// Its directory.
    pub worktree_path: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to show instead of a piece of the reply.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct MessageDisplayOutput {
    /// The text.
    pub display_content: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}
