//! What can go wrong with somebody else's server.

use std::time::Duration;

use serde_json::Value;

/// Why a server could not be reached, or did not answer as it should.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cannot be reached at all.
    #[error("MCP server \"{server}\" could not be reached: {reason}")]
    Unreachable {
        /// Its name.
        server: String,
        /// Why, and for a program what it said last.
        reason: String,
    },
    /// The server wants to know who asks.
    #[error("MCP server \"{server}\" needs authentication: {reason}")]
    NeedsAuth {
        /// Its name.
        server: String,
        /// What it said.
        reason: String,
    },
    /// There was a connection, and now there is none.
    #[error("MCP server \"{server}\" is not connected: {reason}")]
    Closed {
        /// Its name.
        server: String,
        /// Why, and for a program what it said last.
        reason: String,
    },
    /// It took too long.
    #[error("MCP server \"{server}\" {what} timed out after {}", seconds(*.after))]
    TimedOut {
        /// Its name.
        server: String,
        /// What was waited for, like `tool "add"`.
        what: String,
        /// How long.
        after: Duration,
    },
    /// The caller gave up.
    #[error("MCP server \"{server}\" {what} was cancelled")]
    Cancelled {
        /// Its name.
        server: String,
        /// What was waited for.
        what: String,
    },
    /// The server said no.
    #[error("MCP server \"{server}\" {what} failed: {message} (code {code})")]
    Refused {
        /// Its name.
        server: String,
        /// What it was asked for.
        what: String,
        /// JSON-RPC's number.
        code: i64,
        /// What it says.
        message: String,
        /// More about it.
        data: Option<Box<Value>>,
    },
    /// The server answered something that is not an answer.
    #[error("MCP server \"{server}\" {what} was answered with something else: {reason}")]
    Malformed {
        /// Its name.
        server: String,
        /// What it was asked for.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// Whether a login would help.
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
