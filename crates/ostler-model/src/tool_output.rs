//! The result of a tool. Tools run in the engine; recordings store their results.

use ostler_proto::api::{Content, ContentBlock};
use serde_json::Value;

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Content,
    /// What programs read: the published structured output, `tool_use_result` on the wire.
    pub structured: Option<Value>,
    /// What the model reads in addition, as a message of its own after the results of all calls: the text of a skill.
    pub follow_up: Option<String>,
}

impl ToolOutput {
    /// Text for the model, and the structured output.
    pub fn new(text: impl Into<String>, structured: impl serde::Serialize) -> Self {
        let structured =
            serde_json::to_value(structured).expect("structured outputs have string keys");
        Self::of(Content::Text(text.into()), Some(structured))
    }

    /// Content for the model, and the structured output.
    pub fn of(content: Content, structured: Option<Value>) -> Self {
        Self { content, structured, follow_up: None }
    }

    /// Blocks for the model, such as an image, and the structured output.
    pub fn blocks(blocks: Vec<ContentBlock>, structured: impl serde::Serialize) -> Self {
        Self { content: Content::Blocks(blocks), ..Self::new("", structured) }
    }
}

/// Why a tool failed. The model reads both, and may try something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The call is invalid, and the model can correct it.
    #[error("{0}")]
    Refused(String),
    /// The call is valid but could not be carried out: a disk is full, a program is missing.
    #[error("{0}")]
    Failed(String),
}
