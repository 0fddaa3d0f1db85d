//! The common fields of hook inputs: session, directory, mode and agent.
//!
//! On the wire these fields are next to those of the event, so each input struct repeats them. [`with_base`] declares
//! them once.

use ostler_proto_derive::Wire;

use crate::{AgentId, Extra, UnknownObject};

/// The fields that all hook inputs have in common, borrowed from one of them.
///
/// Of an event this version does not know, missing strings read as empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookBase<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The file that holds the session's transcript.
    pub transcript_path: &'a str,
    /// The working directory.
    pub cwd: &'a str,
    /// The prompt being worked on. Newer peers only.
    pub prompt_id: Option<&'a str>,
    /// The permission mode, where the event has one.
    pub permission_mode: Option<&'a str>,
    /// The subagent, inside one.
    pub agent_id: Option<&'a str>,
    /// The kind of agent, inside a subagent or when the session itself runs as one.
    pub agent_type: Option<&'a str>,
    /// The model's effort level. Newer peers only.
    pub effort: Option<&'a str>,
}

impl<'a> HookBase<'a> {
    /// Reads the common fields out of an unknown event.
    pub(super) fn of_unknown(object: &'a UnknownObject) -> Self {
        let text = |name: &str| object.get(name).and_then(|value| value.as_str());
        Self {
            session_id: text("session_id").unwrap_or_default(),
            transcript_path: text("transcript_path").unwrap_or_default(),
            cwd: text("cwd").unwrap_or_default(),
            prompt_id: text("prompt_id"),
            permission_mode: text("permission_mode"),
            agent_id: text("agent_id"),
            agent_type: text("agent_type"),
            effort: object.get("effort").and_then(|effort| effort.get("level")?.as_str()),
        }
    }
}

/// The model's effort level.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Effort {
    /// `low`, `medium`, `high` and so on.
    pub level: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// An input that has the common fields.
pub(super) trait HasBase {
    fn base(&self) -> HookBase<'_>;
}

/// The agent's id in a [`HookBase`], be it optional or required in the struct.
pub(super) trait AgentField {
    fn text(&self) -> Option<&str>;
}

impl AgentField for AgentId {
    fn text(&self) -> Option<&str> {
        Some(self.as_str())
    }
}

impl AgentField for String {
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl<T: AgentField> AgentField for Option<T> {
    fn text(&self) -> Option<&str> {
        self.as_ref()?.text()
    }
}

/// Declares a hook input: the common fields, then those given. `Name of an agent` makes the agent's id and kind
/// required.
macro_rules! with_base {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        with_base! {
            @ [$(#[$meta])*] $name [
                /// The subagent this happens in.
                pub agent_id: Option<$crate::AgentId>,
                /// The kind of agent this happens in.
                pub agent_type: Option<String>,
            ] [$($fields)*]
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident of an agent { $($fields:tt)* }) => {
        with_base! {
            @ [$(#[$meta])*] $name [
                /// The subagent.
                pub agent_id: $crate::AgentId,
                /// The kind of subagent.
                pub agent_type: String,
            ] [$($fields)*]
        }
    };
    (@ [$($meta:tt)*] $name:ident [$($agent:tt)*] [$($fields:tt)*]) => {
        #[derive(Clone, Debug, PartialEq, ostler_proto_derive::Wire)]
        #[wire(tree)]
        $($meta)*
        pub struct $name {
            /// The session.
            pub session_id: $crate::SessionId,
            /// The file that holds the session's transcript.
            pub transcript_path: String,
            /// The working directory.
            pub cwd: String,
            /// The prompt being worked on. Newer peers only.
            pub prompt_id: Option<String>,
            /// The permission mode; some events leave it out.
            pub permission_mode: Option<$crate::permission::PermissionMode>,
            $($agent)*
            /// The model's effort level. Newer peers only.
            pub effort: Option<$crate::hook::Effort>,
            $($fields)*
            /// Unknown fields.
            pub extra: $crate::Extra,
        }

        impl $crate::hook::base::HasBase for $name {
            fn base(&self) -> $crate::hook::HookBase<'_> {
                use $crate::hook::base::AgentField;
                $crate::hook::HookBase {
                    session_id: self.session_id.as_str(),
                    transcript_path: &self.transcript_path,
                    cwd: &self.cwd,
                    prompt_id: self.prompt_id.as_deref(),
                    permission_mode: self.permission_mode.as_ref().map(|mode| mode.as_str()),
                    agent_id: self.agent_id.text(),
                    agent_type: self.agent_type.text(),
                    effort: self.effort.as_ref().map(|effort| effort.level.as_str()),
                }
            }
        }
    };
}

pub(super) use with_base;
