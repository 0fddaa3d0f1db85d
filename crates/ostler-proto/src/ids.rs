//! Identifiers. All are opaque strings on the wire; the types keep them from being mixed up.

use std::fmt;

macro_rules! id {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            /// The identifier on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl From<&$name> for String {
            fn from(id: &$name) -> Self {
                id.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        crate::wire::serde_through_str!($name);
    };
}

id! {
    /// A control request; the sender chooses it, the answer repeats it.
    RequestId
}
id! {
    /// A conversation. A UUID in practice; hosts send `""` or `"default"` for "the current one".
    SessionId
}
id! {
    /// One frame or transcript line.
    Uuid
}
id! {
    /// One tool call of the model (`toolu_…`).
    ToolUseId
}
id! {
    /// A background task: `b…` for commands, `a…` for agents.
    TaskId
}
id! {
    /// A subagent.
    AgentId
}
