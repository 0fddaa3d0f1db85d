//! The answer of a hook.

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::{
    HookEvent, HookSpecificOutput, PermissionDecision, PermissionRequestDecision,
    PermissionRequestOutput, PreToolUseOutput,
};
use crate::{Extra, Num};

/// The answer of a hook. Empty means no opinion.
///
/// With `async` set the agent does not wait, and ignores the other fields.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct HookOutput {
    /// `false` ends the turn once the step at hand is done.
    pub r#continue: Option<bool>,
    /// Keeps the hook's output out of the transcript.
    pub suppress_output: Option<bool>,
    /// The message for the user if `continue` is `false`.
    pub stop_reason: Option<String>,
    /// Approves or blocks what is about to happen.
    pub decision: Option<HookDecision>,
    /// Why; the model reads it.
    pub reason: Option<String>,
    /// A warning for the user.
    pub system_message: Option<String>,
    /// Control characters for the user's terminal. Newer peers only.
    pub terminal_sequence: Option<String>,
    /// What only this event has.
    pub hook_specific_output: Option<HookSpecificOutput>,
    /// `true` if the hook continues in the background.
    pub r#async: Option<bool>,
    /// How long it may take then, in milliseconds.
    pub async_timeout: Option<Num>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Approves or blocks what is about to happen.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum HookDecision {
    /// Let it happen.
    Approve,
    /// Block it: refuse the prompt, continue instead of stopping, report to the model what is wrong with a result.
    Block,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

impl HookOutput {
    /// No opinion: `{}`.
    pub fn none() -> Self {
        Self::default()
    }

    /// For `PreToolUse`: the tool runs without further questions.
    pub fn allow() -> Self {
        Self::pre_tool_use(PermissionDecision::Allow, None)
    }

    /// For `PreToolUse`: the tool runs without further questions, with another input.
    pub fn allow_with(input: impl Into<Value>) -> Self {
        HookSpecificOutput::PreToolUse(PreToolUseOutput {
            permission_decision: Some(PermissionDecision::Allow),
            updated_input: Some(input.into()),
            ..PreToolUseOutput::default()
        })
        .into()
    }

    /// For `PreToolUse`: the tool does not run, and the model reads why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::pre_tool_use(PermissionDecision::Deny, Some(reason.into()))
    }

    /// For `PreToolUse`: the user is asked, and reads why.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::pre_tool_use(PermissionDecision::Ask, Some(reason.into()))
    }

    /// For `PermissionRequest`: answers the question.
    pub fn decide(decision: PermissionRequestDecision) -> Self {
        let output = PermissionRequestOutput { decision, extra: Extra::default() };
        HookSpecificOutput::PermissionRequest(output).into()
    }

    /// Blocks: refuses a prompt, makes a model that wants to stop continue, objects to a result.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision::Block), reason: Some(reason.into()), ..Self::default() }
    }

    /// Ends the turn once the step at hand is done.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self { r#continue: Some(false), stop_reason: Some(reason.into()), ..Self::default() }
    }

    /// Text for the model to read. `None` for an event whose answer has no place for it.
    pub fn context(event: &HookEvent, text: impl Into<String>) -> Option<Self> {
        HookSpecificOutput::context(event, text).map(Self::from)
    }

    /// The hook continues in the background; the agent does not wait.
    pub fn detached() -> Self {
        Self { r#async: Some(true), ..Self::default() }
    }

    /// Adds a warning for the user.
    #[must_use]
    pub fn with_system_message(mut self, text: impl Into<String>) -> Self {
        self.system_message = Some(text.into());
        self
    }

    /// Whether the hook continues in the background.
    pub fn is_detached(&self) -> bool {
        self.r#async == Some(true)
    }

    fn pre_tool_use(decision: PermissionDecision, reason: Option<String>) -> Self {
        HookSpecificOutput::PreToolUse(PreToolUseOutput {
            permission_decision: Some(decision),
            permission_decision_reason: reason,
            ..PreToolUseOutput::default()
        })
        .into()
    }
}

impl From<HookSpecificOutput> for HookOutput {
    fn from(output: HookSpecificOutput) -> Self {
        Self { hook_specific_output: Some(output), ..Self::default() }
    }
}
