//! The errors of the client.

use std::time::Duration;

use serde_json::Value;

/// Why a request to a server failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cannot be reached at all.
    #[error("MCP server \"{server}\" could not be reached: {reason}")]
    #[non_exhaustive]
    Unreachable {
        /// Its name.
        server: String,
        /// The reason, and the last stderr output of a program.
        reason: String,
    },
    /// The server requires authentication.
    #[error("MCP server \"{server}\" needs authentication: {reason}")]
    #[non_exhaustive]
    NeedsAuth {
        /// Its name.
        server: String,
        /// The server's message.
        reason: String,
    },
    /// The user could not be signed in.
    #[error("MCP server \"{server}\": signing in failed: {reason}")]
    #[non_exhaustive]
    SignIn {
        /// Its name.
        server: String,
        /// What failed.
        reason: String,
    },
    /// The connection was closed.
    #[error("MCP server \"{server}\" is not connected: {reason}")]
    #[non_exhaustive]
    Closed {
        /// Its name.
        server: String,
        /// The reason, and the last stderr output of a program.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("MCP server \"{server}\" {what} timed out after {}", seconds(*.after))]
    #[non_exhaustive]
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
    #[non_exhaustive]
    Cancelled {
        /// Its name.
        server: String,
        /// The operation.
        what: String,
    },
    /// The server answered with an error.
    #[error("MCP server \"{server}\" {what} failed: {message} (code {code})")]
    #[non_exhaustive]
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
    #[non_exhaustive]
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
