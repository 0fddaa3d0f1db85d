//! Checks and backups of the database on request, and the results of those in `nightly.rs`.
//!
//! A backup contains the database: sessions, runs, approvals, rules, schedules. It contains neither tokens and users
//! nor the engine's transcripts and checkpoints, which are files in the data folder. The database is copied as of one
//! moment, while engines append to their files at any time: a consistent copy would need the engines to pause, or the
//! transcripts to be in the store. To resume conversations after a restore, the operator also has to copy `engine` of
//! the data folder, while the server is stopped.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};

use ostler_store::{Error, sqlite};

/// The database's folder in the data folder.
pub(crate) const DATABASE: &str = "log";
/// Writes the database of a data folder to a file that must not exist yet, also while a server uses it.
///
/// # Errors
/// When there is no database, or the file cannot be written.
pub async fn back_up(data: &Path, to: &Path) -> Result<(), Error> {
    sqlite::back_up(&data.join(DATABASE), to).await
}

/// Checks all of a backup, or of the database of a data folder. Returns the damage.
///
/// # Errors
/// When it cannot be read at all.
pub async fn check(place: &Path) -> Result<Vec<Error>, Error> {
    let place = if place.is_dir() { place.join(DATABASE) } else { place.to_owned() };
    sqlite::check(&place).await
}

/// Replaces the database of a data folder by a backup. Returns where the old database is.
///
/// # Errors
/// When a server uses the folder, when the backup is damaged, and without `force` when there is a database.
pub async fn restore(from: &Path, data: &Path, force: bool) -> Result<Option<PathBuf>, Error> {
    sqlite::restore(from, &data.join(DATABASE), force).await
}

/// The result of the last check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The damage, or why the check failed.
    pub damages: Vec<String>,
}

/// The results of checks and backups since the start.
#[derive(Debug, Default)]
pub struct Upkeep {
    checked: Mutex<Option<Checked>>,
    /// The last backup, or why it failed.
    backed_up: Mutex<Option<Result<PathBuf, String>>>,
}

impl Upkeep {
    pub fn last_check(&self) -> Option<Checked> {
        self.checked.lock().clone()
    }

    pub(crate) fn note_check(&self, checked: Checked) {
        *self.checked.lock() = Some(checked);
    }

    pub(crate) fn note_backup(&self, made: Result<PathBuf, String>) {
        *self.backed_up.lock() = Some(made);
    }

    pub fn last_backup(&self) -> Option<Result<PathBuf, String>> {
        self.backed_up.lock().clone()
    }
}
