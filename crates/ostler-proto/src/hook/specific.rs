//! The part of a hook's answer that depends on the event.

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::{ElicitationAction, HookEvent};
use crate::permission::PermissionUpdate;
use crate::{Extra, UnknownObject};

/// The part of a hook's answer that depends on the event; the variant must be the event asked about.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "hookEventName", rename_all = "PascalCase")]
#[non_exhaustive]
pub enum HookSpecificOutput {
    /// May the tool run, and with what?
    PreToolUse(PreToolUseOutput),
    /// Is the result to be changed?
    PostToolUse(PostToolUseOutput),
    /// Anything to add to the failure?
    PostToolUseFailure(PostToolUseFailureOutput),
    /// Anything to add to the results?
    PostToolBatch(PostToolBatchOutput),
    /// Anything to add?
    Notification(NotificationOutput),
    /// Anything to add to the prompt?
    UserPromptSubmit(UserPromptSubmitOutput),
    /// Anything to add to the command's text?
    UserPromptExpansion(UserPromptExpansionOutput),
    /// What should the session begin with?
    SessionStart(SessionStartOutput),
    /// Anything to add?
    Setup(SetupOutput),
    /// Anything to add?
    Stop(StopOutput),
    /// Anything to tell the subagent?
    SubagentStart(SubagentStartOutput),
    /// Anything to add?
    SubagentStop(SubagentStopOutput),
    /// May the model change?
    PreModelSwitch(PreModelSwitchOutput),
    /// Anything to tell the new model?
    PostModelSwitch(PostModelSwitchOutput),
    /// May the tool run?
    PermissionRequest(PermissionRequestOutput),
    /// May the model try again?
    PermissionDenied(PermissionDeniedOutput),
    /// An answer in the user's stead.
    Elicitation(ElicitationOutput),
    /// Another answer than the user's.
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

/// May the tool run, and with what?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
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
    /// Whoever grants permissions is asked.
    Ask,
    /// It neither runs nor fails: the turn ends and its result hands the call to the host. Newer peers only.
    Defer,
    /// A word this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Is the result to be changed?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct PostToolUseOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Text for whoever judges the next calls. Newer peers only.
    pub classifier_context: Option<String>,
    /// The result to use instead. Newer peers only.
    pub updated_tool_output: Option<Value>,
    /// The result to use instead, of an MCP tool.
    #[wire(name = "updatedMCPToolOutput")]
    pub updated_mcp_tool_output: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to add to the failure?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct PostToolUseFailureOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to add to the results?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct PostToolBatchOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to add to a notification?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct NotificationOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to add to the prompt?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
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

/// Anything to add to the command's text?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct UserPromptExpansionOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Keeps the prompt itself from the model.
    pub suppress_original_prompt: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What should the session begin with?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
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

/// Anything to add to a setup?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct SetupOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to add to the end of a turn? Newer peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct StopOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to tell the subagent?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct SubagentStartOutput {
    /// Text for its model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to add to a subagent's end? Newer peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct SubagentStopOutput {
    /// Text for the model.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// May the model change?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct PreModelSwitchOutput {
    /// The decision.
    pub permission_decision: Option<PermissionDecision>,
    /// Why.
    pub permission_decision_reason: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Anything to tell the new model?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct PostModelSwitchOutput {
    /// Text for it.
    pub additional_context: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The answer to a permission request.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
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
#[wire(rename_all = "camelCase")]
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
#[wire(rename_all = "camelCase")]
pub struct PermissionRequestDeny {
    /// Why; the model reads it.
    pub message: Option<String>,
    /// Whether the turn ends too.
    pub interrupt: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// May the model try again?
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct PermissionDeniedOutput {
    /// Whether it may.
    pub retry: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An answer to an MCP server in the user's stead.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct ElicitationOutput {
    /// What becomes of the question.
    pub action: Option<ElicitationAction>,
    /// The answer.
    pub content: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Another answer to an MCP server than the user's.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct ElicitationResultOutput {
    /// What becomes of the question.
    pub action: Option<ElicitationAction>,
    /// The answer.
    pub content: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to watch after a change of directory.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct CwdChangedOutput {
    /// The files.
    pub watch_paths: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to watch after a file changed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct FileChangedOutput {
    /// The files.
    pub watch_paths: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where the worktree is.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct WorktreeCreateOutput {
    /// Its directory.
    pub worktree_path: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to show instead of a piece of the reply.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
pub struct MessageDisplayOutput {
    /// The text.
    pub display_content: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}
