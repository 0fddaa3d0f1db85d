//! What goes wrong inside, as a refusal: the cause goes to the log, the client learns that it was not their fault.

use axum::http::StatusCode;

use super::{ApiError, shown};

pub type Fallible<T> = Result<T, ApiError>;

/// Something that should not have happened.
pub fn internal(cause: impl std::fmt::Display) -> ApiError {
    tracing::error!(%cause, "a request failed");
    ApiError::internal()
}

/// There is none, or none that the caller may see.
pub fn not_found(kind: &str, id: &str) -> ApiError {
    ApiError::not_found(format!("there is no {kind} {}", shown(id)))
}

/// Whether something could not be kept because of the store, or because another server has the session: the request
/// itself was right.
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
                Self::conflict("changed", "somebody else has just changed this")
            }
            Error::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", error.to_string())
            }
            Error::Fenced { .. } => {
                Self::unavailable("interrupted", "the session has just changed hands")
                    .hint("nothing was done; try again")
            }
            Error::Full { .. } => {
                tracing::error!(%error, "nothing can be kept");
                let message = "the server's disk is full, so nothing can be kept";
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message)
                    .hint("nothing was done; whoever runs the server has to make room")
            }
            Error::Broken(_) | Error::Closed => {
                tracing::error!(%error, "nothing can be kept");
                Self::unavailable("store", "the server can keep nothing at the moment")
                    .hint("it tries again every second; its log says what is wrong with the disk")
            }
            Error::Failed { .. } => {
                tracing::error!(%error, "something could not be kept");
                Self::unavailable("store", "the server could not keep this")
                    .hint("nothing was done; try again")
            }
            _ => internal(error),
        }
    }
}
