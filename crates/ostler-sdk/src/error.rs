//! [`Error`] and [`ErrorKind`].

use std::time::Duration;

use ostler_proto::control::UNSUPPORTED_REQUEST;
use ostler_proto::message::{ResultSubtype, TurnResult};
use ostler_proto::peer::CallError;
use ostler_proto::version::Version;

/// An error of the SDK. [`Error::kind`] classifies it; the text says what happened and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No engine was found.
    #[error("no engine found: {0}")]
    NoEngine(String),
    /// The engine could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The engine is older than every version that this SDK supports.
    #[error(
        "the engine is Claude Code {found}, and this SDK needs {oldest} or newer: update it (`claude update`, or \
         `npm install -g @anthropic-ai/claude-code`), or choose another engine with Options::executable or OSTLER_ENGINE"
    )]
    #[non_exhaustive]
    TooOld {
        /// Its version.
        found: Version,
        /// The oldest version that is supported.
        oldest: Version,
    },
    /// The engine ended by itself with an error.
    #[error("the engine ended with {status}{}", tail(.stderr))]
    Exited {
        /// The exit status as text.
        status: String,
        /// Its exit code; `None` when a signal ended it.
        code: Option<i32>,
        /// The end of the engine's stderr.
        stderr: String,
    },
    /// The connection to the engine broke.
    #[error("the connection to the engine broke: {reason}{}", tail(.stderr))]
    Lost {
        /// Why it broke.
        reason: String,
        /// The end of the engine's stderr.
        stderr: String,
    },
    /// The engine sent a malformed message.
    #[error("the engine sent a malformed message: {0}")]
    Malformed(#[from] ostler_proto::DecodeError),
    /// The engine refused a request.
    #[error("the engine refused {request}: {message}")]
    #[non_exhaustive]
    Refused {
        /// The name of the request.
        request: String,
        /// The engine's reason.
        message: String,
        /// The engine's error code, such as `unsupported_request`.
        code: Option<String>,
    },
    /// The engine does not know a request: it is another program, or an older one.
    #[error(
        "the engine does not know the request {request}; a newer engine may know it: {message}"
    )]
    #[non_exhaustive]
    Unsupported {
        /// The name of the request.
        request: String,
        /// The engine's answer.
        message: String,
    },
    /// The session was cancelled by its [`crate::options::EngineOptions::cancellation`].
    #[error("the session was cancelled")]
    Cancelled,
    /// The prompt was withdrawn before its turn, by [`crate::Handle::cancel_queued`] or
    /// [`crate::Handle::interrupt_all`].
    #[error("the prompt was withdrawn before its turn")]
    Withdrawn,
    /// The session is over, so the request cannot be answered.
    #[error("the session is over: {0}")]
    Closed(String),
    /// A turn ended with an error.
    #[error("{}", turn_text(.0))]
    Turn(Box<TurnResult>),
    /// The answer does not have the requested type.
    #[error("the answer does not have the requested type: {message}")]
    #[non_exhaustive]
    Answer {
        /// What is wrong with the answer.
        message: String,
        /// The result of the turn.
        result: Box<TurnResult>,
    },
    /// A stored session could not be found, read or changed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The options contradict each other, or are not possible on this machine.
    #[error("{0}")]
    Options(String),
    /// Something took longer than its limit.
    #[error("{what} took longer than {} s", .limit.as_secs_f64())]
    #[non_exhaustive]
    TimedOut {
        /// What took too long.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
}

/// Why a stored session could not be found, read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session does not exist.
    #[error("no session has the id {0}; list the sessions to see which ones exist")]
    NotFound(String),
    /// The id is not a UUID.
    #[error(
        "{0} is not a session id, which is a UUID such as 550e8400-e29b-41d4-a716-446655440000"
    )]
    InvalidId(String),
    /// The session does not contain the message.
    #[error("session {session} does not contain the message {message}")]
    NoSuchMessage {
        /// The session.
        session: String,
        /// The uuid of the message.
        message: String,
    },
    /// The change is not valid, such as an empty title.
    #[error("{0}")]
    Invalid(String),
    /// The storage failed.
    #[error("{0}")]
    Storage(String),
}

/// Classes of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No engine, or one that cannot be started or is too old: install one or name another.
    Engine,
    /// The engine or the connection to it died.
    Connection,
    /// The engine violates the protocol.
    Protocol,
    /// The engine refused a request.
    Refused,
    /// The engine does not know a request.
    Unsupported,
    /// The host cancelled the session or the prompt.
    Cancelled,
    /// The API returned an error, or did not answer.
    Api,
    /// A turn reached its limit on turns.
    MaxTurns,
    /// A turn reached its limit on dollars or tokens.
    Budget,
    /// The model's answer does not have the requested type.
    Answer,
    /// A turn was interrupted, or failed in another way.
    Turn,
    /// The program uses the SDK wrongly, for example with contradictory options.
    Usage,
    /// A time limit was reached.
    Timeout,
    /// A stored session could not be found, read or changed.
    Session,
}

impl Error {
    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoEngine(_) | Self::Start { .. } | Self::TooOld { .. } => ErrorKind::Engine,
            Self::Exited { .. } | Self::Lost { .. } | Self::Closed(_) => ErrorKind::Connection,
            Self::Malformed(_) => ErrorKind::Protocol,
            Self::Refused { .. } => ErrorKind::Refused,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Cancelled | Self::Withdrawn => ErrorKind::Cancelled,
            Self::Answer { .. } => ErrorKind::Answer,
            Self::Options(_) => ErrorKind::Usage,
            Self::Session(_) => ErrorKind::Session,
            Self::TimedOut { .. } => ErrorKind::Timeout,
            Self::Turn(result)
                if result.extra.get("limit_reached").is_some_and(|limit| limit == "time") =>
            {
                ErrorKind::Timeout
            }
            Self::Turn(result) => match result.subtype {
                ResultSubtype::ErrorMaxTurns => ErrorKind::MaxTurns,
                ResultSubtype::ErrorMaxBudgetUsd => ErrorKind::Budget,
                ResultSubtype::ErrorMaxStructuredOutputRetries => ErrorKind::Answer,
                // The subtype `success` together with `is_error` reports an error of the API.
                ResultSubtype::Success => ErrorKind::Api,
                _ => ErrorKind::Turn,
            },
        }
    }

    /// Whether a retry may succeed: the connection broke, or the API is overloaded.
    pub fn is_retryable(&self) -> bool {
        match self {
            // `code: None`: a signal ended the engine, for example because the system was short of memory.
            Self::Lost { .. } | Self::TimedOut { .. } | Self::Exited { code: None, .. } => true,
            Self::Turn(_) => matches!(self.api_status(), Some(408 | 429 | 500..=599)),
            _ => false,
        }
    }

    /// The HTTP status of the API, if the API caused the error.
    pub fn api_status(&self) -> Option<u16> {
        match self {
            Self::Turn(result) => result.api_error_status,
            _ => None,
        }
    }

    /// The engine's exit code.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited { code, .. } => *code,
            _ => None,
        }
    }

    /// The end of the engine's stderr.
    pub fn stderr(&self) -> Option<&str> {
        match self {
            Self::Exited { stderr, .. } | Self::Lost { stderr, .. } => Some(stderr),
            _ => None,
        }
    }

    /// The error of a turn, if its result is one.
    pub fn of_turn(result: &TurnResult) -> Option<Self> {
        let failed = result.is_error || result.subtype != ResultSubtype::Success;
        failed.then(|| Self::Turn(Box::new(result.clone())))
    }

    /// The error for a result that an engine sends instead of its answer to `initialize`, for example because the
    /// conversation to resume does not exist. There is no session, so it is not the error of a turn.
    pub(crate) fn refused_start(result: TurnResult) -> Self {
        let message = turn_text(&result);
        Self::Refused { request: "to start".to_owned(), message, code: None }
    }

    pub(crate) fn of_call(request: &str, error: CallError) -> Self {
        match error {
            CallError::Refused { error, code, .. } if is_unsupported(&error, code.as_deref()) => {
                Self::Unsupported { request: request.to_owned(), message: error }
            }
            CallError::Refused { error, code, .. } => {
                Self::Refused { request: request.to_owned(), message: error, code }
            }
            CallError::Closed { reason, .. } => Self::Closed(reason),
            other => Self::Closed(other.to_string()),
        }
    }
}

/// Newer engines send a code; all engines use the same text.
fn is_unsupported(error: &str, code: Option<&str>) -> bool {
    code == Some(UNSUPPORTED_REQUEST) || error.starts_with("Unsupported control request subtype")
}

fn tail(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; its stderr: {text}"),
    }
}

fn turn_text(result: &TurnResult) -> String {
    let errors = result.errors.as_ref().filter(|errors| !errors.is_empty());
    match (errors, &result.result) {
        (Some(errors), _) => errors.join("; "),
        (None, Some(text)) => text.clone(),
        (None, None) => format!("the turn ended with {}", result.subtype),
    }
}
