//! What can go wrong.

use crate::{InvalidName, StreamId, Timestamp};

/// Why a store did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Somebody else holds the stream.
    #[error("{stream} is held by {by} until {until}; try again then")]
    Held {
        /// Which.
        stream: StreamId,
        /// Who.
        by: String,
        /// Until when, by the clock of the store.
        until: Timestamp,
    },
    /// The lease or claim is lost: somebody else has it now, or it was given back. Nothing was written; stop.
    #[error(
        "the claim {epoch} on {what} is no longer valid; somebody else may be at it, so nothing was written"
    )]
    Fenced {
        /// The stream, or the id of what was due.
        what: String,
        /// The number of the lost claim.
        epoch: u64,
    },
    /// A record is not as expected. Nothing was written.
    #[error("{kind} {id} {}; nothing was written, read it again", found_text(.found))]
    Conflict {
        /// The record's kind.
        kind: String,
        /// The record's id.
        id: String,
        /// The version that is there.
        found: Option<u64>,
    },
    /// Something is larger than may be stored.
    #[error("{what} has {bytes} bytes; at most {limit} can be stored")]
    TooLarge {
        /// What.
        what: String,
        /// How large.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The request cannot be, whatever is in the store.
    #[error("{0}")]
    Invalid(String),
    /// What is stored is not what was written.
    #[error("{what} is damaged: {why}; restore it from a backup")]
    Damaged {
        /// What.
        what: String,
        /// How that shows.
        why: String,
    },
    /// The disk is full. Nothing was written; the same may work when there is room.
    #[error("the disk with {place} is full; make room and try again")]
    Full {
        /// The file or folder.
        place: String,
    },
    /// The store cannot be opened.
    #[error("cannot open the store in {place}: {why}")]
    Open {
        /// The folder or address.
        place: String,
        /// Why not, and what to do.
        why: String,
    },
    /// The store has failed and takes no more changes until [`crate::Store::reopen`] succeeds. Whether this one was stored is not
    /// known: try again under the same key.
    #[error("the store failed and must be opened again: {0}")]
    Broken(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// Something went wrong this once; nothing was written.
    #[error("{doing}: {why}")]
    Failed {
        /// What was being done.
        doing: String,
        /// What went wrong.
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
        Some(version) => format!("is there in version {version}, which was not expected"),
        None => "is not there".to_owned(),
    }
}
