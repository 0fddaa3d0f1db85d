//! Progress of command hooks from settings files. Callback hooks of the host are not reported here.

use ostler_proto_derive::Wire;

use crate::{Extra, SessionId, Uuid};

/// `hook_started`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct HookStarted {
    /// This run of the hook.
    pub hook_id: String,
    /// For instance `PreToolUse:Bash` or `SessionStart:startup`.
    pub hook_name: String,
    /// The event.
    pub hook_event: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `hook_progress`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct HookProgress {
    /// This run of the hook.
    pub hook_id: String,
    /// For instance `PreToolUse:Bash`.
    pub hook_name: String,
    /// The event.
    pub hook_event: String,
    /// Stdout so far.
    pub stdout: String,
    /// Stderr so far.
    pub stderr: String,
    /// Both.
    pub output: String,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// `hook_response`.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(hook_id, outcome))]
#[non_exhaustive]
pub struct HookResponse {
    /// This run of the hook.
    pub hook_id: String,
    /// For instance `PreToolUse:Bash`.
    pub hook_name: String,
    /// The event.
    pub hook_event: String,
    /// Both streams.
    pub output: String,
    /// Stdout.
    pub stdout: String,
    /// Stderr.
    pub stderr: String,
    /// The exit code, if it ended by itself.
    pub exit_code: Option<i64>,
    /// The outcome.
    pub outcome: HookOutcome,
    /// The conversation.
    pub session_id: SessionId,
    /// This frame.
    pub uuid: Uuid,
    /// Unknown fields.
    pub extra: Extra,
}

/// The outcome of a command hook.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum HookOutcome {
    /// It exited with 0.
    Success,
    /// It did not.
    Error,
    /// It was stopped.
    Cancelled,
    /// An outcome this version does not know.
    #[wire(other)]
    Other(Box<str>),
}
