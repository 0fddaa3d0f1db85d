//! The request in one sentence.

use serde_json::Value;

/// Something the demo can do, or the text that it did not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Name files.
    List { pattern: String, path: Option<String> },
    /// Say how many files there are.
    Count { path: Option<String> },
    /// Show files, in parallel.
    Read { paths: Vec<String> },
    /// Write a file.
    Write { path: String, content: String },
    /// Replace text in a file.
    Edit { path: String, old: String, new: String, all: bool },
    /// Run a command; in the background, the conversation continues meanwhile.
    Run { command: String, background: bool },
    /// Find text in files.
    Search { pattern: String, path: Option<String> },
    /// Ask the user; about anything if nothing is given.
    Ask { about: Option<String> },
    /// Give work to a subagent.
    Delegate { prompt: String },
    /// Call a tool by its name, one of a server for instance.
    Call { tool: String, input: Value },
    /// Say what this is and what it can do.
    Help,
    /// None of these.
    Unknown(String),
}
