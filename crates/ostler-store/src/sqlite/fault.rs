//! Errors between the writer and SQLite, and how far they reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::{ErrorCode, ffi};

use crate::Error;

/// For tests: the SQLite error with which every statement fails; 0 for no failure.
#[derive(Clone, Debug, Default)]
pub(super) struct FailStatements(Arc<AtomicI32>);

impl FailStatements {
    pub(super) fn set(&self, code: i32) {
        self.0.store(code, Ordering::Relaxed);
    }

    pub(super) fn check(&self) -> rusqlite::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
        }
    }
}

/// Why a request was not performed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The request is refused. Others in the same commit are not affected.
    Refused(Error),
    /// SQLite failed, so the whole commit fails.
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

/// The error to report, and whether the store must stop writing.
///
/// After a failed write or sync the contents of the disk are unknown: a retry can succeed without writing anything.
/// Only opening the database again shows what is there.
pub(super) fn judge(error: &rusqlite::Error, place: &str) -> (Error, bool) {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (Error::Full { place: place.to_owned() }, false),
        Some(ErrorCode::SystemIoFailure) => {
            // The message is the same for all of them; the code distinguishes a failed sync (1034) from a failed
            // write.
            let number = error.sqlite_error().map_or(0, |error| error.extended_code);
            (Error::Broken(format!("{place}: {error} ({number})")), true)
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (Error::Damaged { what: place.to_owned(), why: error.to_string() }, true)
        }
        _ => (Error::Failed { doing: format!("using {place}"), why: error.to_string() }, false),
    }
}
