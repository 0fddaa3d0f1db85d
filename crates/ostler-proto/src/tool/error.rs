//! The error for an invalid input or output of a tool.

use std::fmt;

use thiserror::Error;

/// A known tool's input or output that does not decode. The message names the tool and the field.
#[derive(Debug, Error)]
#[error("{side} of {tool}: {source}")]
pub struct ToolShapeError {
    tool: Box<str>,
    side: Side,
    source: serde_json::Error,
}

impl ToolShapeError {
    pub(super) fn new(tool: &str, side: Side, source: serde_json::Error) -> Self {
        Self { tool: tool.into(), side, source }
    }

    /// The tool, by the name it was called.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether it was the tool's input or its output.
    pub fn side(&self) -> Side {
        self.side
    }
}

/// One side of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What the model passed to the tool.
    Input,
    /// What the tool returned.
    Output,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}
