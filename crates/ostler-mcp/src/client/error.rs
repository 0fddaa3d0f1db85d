//! The errors of the client.

use std::time::Duration;

use serde_json::Value;

/// Why a request to a server failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cannot be reached at all.
    #[error("MCP server \"{server}\" could not be reached: {reason}")]
    Unreachable {
        /// Its name.
        server: String,
        /// The reason, and the last stderr output of a program.
        reason: String,
    },
    /// The server requires authentication.
    #[error("MCP server \"{server}\" needs authentication: {reason}")]
    NeedsAuth {
        /// Its name.
        server: String,
        /// The server's message.
        reason: String,
    },
    /// The connection was closed.
    #[error("MCP server \"{server}\" is not connected: {reason}")]
    Closed {
        /// Its name.
        server: String,
        /// The reason, and the last stderr output of a program.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("MCP server \"{server}\" {what} timed out after {}", seconds(*.after))]
    TimedOut {
        /// Its name.
        server: String,
        /// The operation, such as `tool "add"`.
        what: String,
        /// The timeout.
        after: Duration,
    },
    /// The caller cancelled the request.
    #[error("MCP server \"{server}\" {what} was cancelled")]
    Cancelled {
        /// Its name.
        server: String,
        /// The operation.
        what: String,
    },
    /// The server answered with an error.
    #[error("MCP server \"{server}\" {what} failed: {message} (code {code})")]
    Refused {
        /// Its name.
        server: String,
        /// The operation.
        what: String,
        /// The JSON-RPC error code.
        code: i64,
        /// The JSON-RPC error message.
        message: String,
        /// The JSON-RPC error data.
        data: Option<Box<Value>>,
    },
    /// The server's answer is not valid.
    #[error("MCP server \"{server}\" {what} got a malformed answer: {reason}")]
    Malformed {
        /// Its name.
        server: String,
        /// The operation.
        what: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl Error {
    /// Whether authentication would help.
    pub fn needs_auth(&self) -> bool {
        matches!(self, Self::NeedsAuth { .. })
    }
}

fn seconds(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}
