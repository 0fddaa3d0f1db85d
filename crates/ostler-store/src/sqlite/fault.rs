//! What can go wrong between us and SQLite, and how far it reaches.

use rusqlite::ErrorCode;

use crate::Error;

/// Why a piece of work did not get done.
#[derive(Debug)]
pub(super) enum Fault {
    /// It must not be done. Others in the same commit are not concerned.
    Refused(Error),
    /// SQLite could not do it, and with it nothing of the same commit.
    Sqlite(rusqlite::Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// What to tell about an error, and whether nothing may be written any more.
///
/// After a write or a sync that failed nobody knows what is on the disk: trying it again can succeed without anything being
/// written. Only opening the database again finds out.
pub(super) fn judge(error: &rusqlite::Error, place: &str) -> (Error, bool) {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (Error::Full { place: place.to_owned() }, false),
        Some(ErrorCode::SystemIoFailure) => {
            // The text is the same for all of them; the number tells a failed sync (1034) from a failed write.
            let number = error.sqlite_error().map_or(0, |error| error.extended_code);
            (Error::Broken(format!("{place}: {error} ({number})")), true)
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (Error::Damaged { what: place.to_owned(), why: error.to_string() }, true)
        }
        _ => (Error::Failed { doing: format!("using {place}"), why: error.to_string() }, false),
    }
}
