//! Checks and backups of the database by hand, and what is known of those that `nightly.rs` makes.
//!
//! A backup has what is in the database: sessions, runs, approvals, rules, schedules. It has neither tokens and users nor the
//! engine's transcripts and checkpoints, which are files of the data folder. They are not part of it because the database is
//! copied as of one moment, while engines append to their files at any time: a copy that belongs to the same moment needs the
//! engines to pause, or the transcripts to be in the store. Whoever wants to resume conversations after a restore also copies
//! `engine` of the data folder, while the server is stopped.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ostler_store::{Error, sqlite};

/// Where in the data folder the database is.
pub(crate) const DATABASE: &str = "log";
/// Writes the database of a data folder to a file that must not exist yet, also while a server uses it.
///
/// # Errors
/// When there is no database, or the file cannot be written.
pub async fn back_up(data: &Path, to: &Path) -> Result<(), Error> {
    sqlite::back_up(&data.join(DATABASE), to).await
}

/// Looks at all of a backup, or of the database of a data folder. Returns what is damaged.
///
/// # Errors
/// When it cannot be read at all.
pub async fn check(place: &Path) -> Result<Vec<Error>, Error> {
    let place = if place.is_dir() { place.join(DATABASE) } else { place.to_owned() };
    sqlite::check(&place).await
}

/// Puts a backup in the place of the database of a data folder. Returns where what was there is kept.
///
/// # Errors
/// When a server uses the folder, when the backup is damaged, and without `force` when something is there.
pub async fn restore(from: &Path, data: &Path, force: bool) -> Result<Option<PathBuf>, Error> {
    sqlite::restore(from, &data.join(DATABASE), force).await
}

/// What the last check found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Milliseconds since 1970.
    pub at: u64,
    /// What is damaged, or why it could not be looked at.
    pub damages: Vec<String>,
}

/// What is known of checks and backups since the start.
#[derive(Debug, Default)]
pub struct Upkeep {
    checked: Mutex<Option<Checked>>,
    /// The last backup, or why there is none.
    backed_up: Mutex<Option<Result<PathBuf, String>>>,
}

impl Upkeep {
    pub fn last_check(&self) -> Option<Checked> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_check(&self, checked: Checked) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(checked);
    }

    pub(crate) fn note_backup(&self, made: Result<PathBuf, String>) {
        *self.backed_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }

    pub fn last_backup(&self) -> Option<Result<PathBuf, String>> {
        self.backed_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
