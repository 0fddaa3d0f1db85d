//! Failures inside the server as refusals: the cause goes to the log, and the client learns that the request was not at
//! fault.

use axum::http::StatusCode;

use super::{ApiError, shown};

pub type Fallible<T> = Result<T, ApiError>;

/// Logs an unexpected failure and returns a refusal without its cause.
pub fn internal(cause: impl std::fmt::Display) -> ApiError {
    tracing::error!(%cause, "a request failed");
    ApiError::internal()
}

/// The thing does not exist, or the caller may not see it.
pub fn not_found(kind: &str, id: &str) -> ApiError {
    ApiError::not_found(format!("there is no {kind} {}", shown(id)))
}

/// Whether the store failed or another server has the session, so that the request itself was valid.
pub fn is_of_store(error: &ApiError) -> bool {
    ["disk_full", "store", "interrupted", "held_elsewhere"].contains(&error.detail().code.as_ref())
}

impl From<ostler_store::Error> for ApiError {
    fn from(error: ostler_store::Error) -> Self {
        use ostler_store::Error;
        match &error {
            Error::Held { .. } => {
                Self::conflict("held_elsewhere", "another server works on this session")
                    .hint("try again in half a minute")
            }
            Error::Conflict { .. } => {
                Self::conflict("changed", "another request has just changed this")
            }
            Error::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", error.to_string())
            }
            Error::Fenced { .. } => {
                Self::unavailable("interrupted", "another worker has just taken over the session")
                    .hint("nothing was done; try again")
            }
            Error::Full { .. } => {
                tracing::error!(%error, "nothing can be stored");
                let message = "the server's disk is full, so nothing can be stored";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message)
                    .hint("nothing was done; the operator of the server has to free disk space")
            }
            Error::Broken(_) | Error::Closed => {
                tracing::error!(%error, "nothing can be stored");
                Self::unavailable("store", "the server cannot store anything at the moment")
                    .hint("it tries again every second; see its log for the cause")
            }
            Error::Failed { .. } => {
                tracing::error!(%error, "something could not be stored");
                Self::unavailable("store", "the server could not store this")
                    .hint("nothing was done; try again")
            }
            _ => internal(error),
        }
    }
}
