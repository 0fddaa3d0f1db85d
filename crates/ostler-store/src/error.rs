//! The errors of a store.

use crate::{InvalidName, StreamId, Timestamp};

/// Why a store refused or failed a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another owner holds the stream.
    #[error("{stream} is held by {by} until {until}; try again then")]
    Held {
        /// The stream.
        stream: StreamId,
        /// The owner that holds it.
        by: String,
        /// When its lease expires, by the store's clock.
        until: Timestamp,
    },
    /// The lease or claim is lost: another owner has it, or it was released. Nothing was written; stop.
    #[error(
        "the claim {epoch} on {what} is no longer valid because another owner may have it; nothing was written"
    )]
    Fenced {
        /// The stream, or the id of the timer.
        what: String,
        /// The epoch of the lost claim.
        epoch: u64,
    },
    /// A record does not have the expected version. Nothing was written.
    #[error("{kind} {id} {}; nothing was written: read the record and try again", found_text(.found))]
    Conflict {
        /// The record's kind.
        kind: String,
        /// The record's id.
        id: String,
        /// The stored version; `None` if there is no such record.
        found: Option<u64>,
    },
    /// Something exceeds a size limit.
    #[error("{what} has {bytes} bytes; at most {limit} can be stored")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The request is invalid, whatever the store contains.
    #[error("{0}")]
    Invalid(String),
    /// Stored data is not what was written.
    #[error("{what} is damaged: {why}; restore it from a backup")]
    Damaged {
        /// What is damaged.
        what: String,
        /// How the damage was detected.
        why: String,
    },
    /// The disk is full. Nothing was written; retry when there is space.
    #[error("the disk with {place} is full; free disk space and try again")]
    Full {
        /// The file or folder.
        place: String,
    },
    /// The store cannot be opened.
    #[error("cannot open the store in {place}: {why}")]
    Open {
        /// The folder or address.
        place: String,
        /// The reason, and what to do.
        why: String,
    },
    /// The store has failed and accepts no changes until [`crate::Store::reopen`] succeeds. It is unknown whether
    /// this change was stored: retry it under the same key.
    #[error("the store failed and must be opened again: {0}")]
    Broken(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A transient failure; nothing was written.
    #[error("{doing}: {why}")]
    Failed {
        /// The operation that failed.
        doing: String,
        /// The reason.
        why: String,
    },
}

impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::Invalid(error.to_string())
    }
}

fn found_text(found: &Option<u64>) -> String {
    match found {
        Some(version) => format!("has version {version}, which was not expected"),
        None => "does not exist".to_owned(),
    }
}
