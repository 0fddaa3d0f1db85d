//! [`PromptError`]: why a prompt could not be built.

/// Why a prompt could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// A namespace or a key is not valid.
    #[error(
        "the {what} `{key}` is not valid: start with a-z or a digit, continue with those and `.`, `_`, `-`, at most 64 characters"
    )]
    #[non_exhaustive]
    Key {
        /// `namespace`, `key` or `section key`.
        what: &'static str,
        /// The given value.
        key: String,
    },
    /// The prompt has no text.
    #[error("the prompt has no text: add a section with text")]
    Empty,
    /// Two sections have the same key.
    #[error("two sections have the key `{key}`; give one of them another")]
    #[non_exhaustive]
    SameKey {
        /// The key.
        key: String,
    },
    /// Two tools have the same name.
    #[error("two tools have the name `{name}`; give one of them another")]
    #[non_exhaustive]
    SameTool {
        /// The name.
        name: String,
    },
    /// A tool's name is not valid.
    #[error(
        "`{name}` is not a valid tool name: use letters, digits, `_` and `-`, at most 48 characters"
    )]
    #[non_exhaustive]
    ToolName {
        /// The given name.
        name: String,
    },
    /// A placeholder has no parameter.
    #[error("section `{section}`: the parameter `{name}` is missing; add it to `params`")]
    #[non_exhaustive]
    MissingParameter {
        /// The section's key.
        section: String,
        /// The placeholder.
        name: String,
    },
    /// A parameter has no placeholder.
    #[error(
        "section `{section}`: the parameter `{name}` is not used; write `${{{name}}}` into the template, or leave it out"
    )]
    #[non_exhaustive]
    UnusedParameter {
        /// The section's key.
        section: String,
        /// The parameter.
        name: String,
    },
    /// A template is malformed.
    #[error("section `{section}`: {reason}")]
    #[non_exhaustive]
    Template {
        /// The section's key.
        section: String,
        /// What is wrong.
        reason: String,
    },
    /// Parameters cannot be serialized.
    #[error("section `{section}`: its parameters: {reason}")]
    #[non_exhaustive]
    Parameters {
        /// The section's key.
        section: String,
        /// What is wrong.
        reason: String,
    },
    /// The type of the answer cannot be requested.
    #[error("the type of the answer: {0}")]
    Answer(String),
}
