//! Backup and restore, for operators, with or without a running server.
//!
//! A backup is one file, a complete database as of one moment: SQLite lets another process read while a server
//! writes. Only a restore locks the folder, so that no server uses it.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::fault::{Fault, judge};
use super::folder::{DATABASE, Folder, sync_folder};
use super::{examine, schema};
use crate::Error;

/// Writes everything in a store's folder, as of one moment, to a new file.
pub async fn back_up(folder: &Path, to: &Path) -> Result<(), Error> {
    let (database, to) = (folder.join(DATABASE), to.to_owned());
    aside(move || schema::back_up(&open(&database)?, &to)).await
}

/// Checks a store's folder, or a backup. Returns what is damaged.
pub async fn check(place: &Path) -> Result<Vec<Error>, Error> {
    let database = if place.is_dir() { place.join(DATABASE) } else { place.to_owned() };
    aside(move || check_file(&database)).await
}

/// Replaces the contents of a store's folder with a backup, after checking the backup; all of it or nothing. Returns
/// where the previous contents are, if there were any.
///
/// Without `replaces`, [`Error::Open`] if the folder has a store that is not empty.
pub async fn restore(from: &Path, folder: &Path, replaces: bool) -> Result<Option<PathBuf>, Error> {
    let (from, folder) = (from.to_owned(), folder.to_owned());
    aside(move || restore_blocking(&from, &folder, replaces)).await
}

async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::Failed { doing: "copying the store".to_owned(), why: error.to_string() })
    })
}

/// Opens an existing database of this program.
fn open(database: &Path) -> Result<Connection, Error> {
    let place = database.display().to_string();
    let failed = |why: String| Error::Open { place: place.clone(), why };
    if !database.is_file() {
        return Err(failed("there is no such file; name the data folder, or a backup".to_owned()));
    }
    // SQLite reads a database with a write-ahead log only next to files of its own, so the folder must be writable.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)
        .and_then(|connection| {
            connection.busy_timeout(std::time::Duration::from_secs(5))?;
            connection.pragma_update(None, "query_only", true)?;
            Ok(connection)
        })
        .map_err(|error| failed(error.to_string()))?;
    schema::check_ours(&connection).map_err(failed)?;
    Ok(connection)
}

fn check_file(database: &Path) -> Result<Vec<Error>, Error> {
    let connection = open(database)?;
    examine::all(&connection).map_err(|fault| match fault {
        Fault::Refused(error) => error,
        Fault::Sqlite(error) => judge(&error, &database.display().to_string()).0,
    })
}

fn restore_blocking(from: &Path, folder: &Path, replaces: bool) -> Result<Option<PathBuf>, Error> {
    let place = folder.display().to_string();
    let failed = |why: String| Error::Failed { doing: format!("restoring {place}"), why };
    if let Some(damage) = check_file(from)?.into_iter().next() {
        return Err(failed(format!("the backup is damaged ({damage}); use another one")));
    }
    // Fails while a server uses the folder.
    let folder = Folder::open(folder)?;
    let database = folder.database();
    let is_empty = std::fs::metadata(&database).is_ok_and(|file| file.len() == 0);
    if !is_empty && !replaces {
        let why = "it contains sessions, which would be replaced; use --force to replace them";
        return Err(Error::Open { place, why: why.to_owned() });
    }
    let new = folder.path().join("restoring.db");
    _ = std::fs::remove_file(&new);
    schema::back_up(&open(from)?, &new)?;
    let kept = if is_empty { None } else { Some(keep(&folder)?) };
    // The backup contains what was in the log. An old log next to the new database would destroy it.
    for suffix in ["-wal", "-shm"] {
        let mut path = database.clone().into_os_string();
        path.push(suffix);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(format!("removing {}: {error}", Path::new(&path).display())));
            }
            _ => {}
        }
    }
    std::fs::rename(&new, &database).map_err(|error| failed(error.to_string()))?;
    sync_folder(folder.path()).map_err(|error| failed(error.to_string()))?;
    Ok(kept)
}

/// Copies the current contents, as far as they are readable.
fn keep(folder: &Folder) -> Result<PathBuf, Error> {
    let mut number = 1;
    let copy = loop {
        let copy = folder.path().join(format!("before-restore-{number}.db"));
        if !copy.exists() {
            break copy;
        }
        number += 1;
    };
    let database = folder.database();
    let copied = open(&database).and_then(|old| {
        // Merges its write-ahead log.
        _ = old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        schema::back_up(&old, &copy)
    });
    if copied.is_err() {
        // Too damaged to copy as a database; the raw bytes may still be useful.
        std::fs::copy(&database, &copy).map_err(|error| Error::Failed {
            doing: format!("copying {} to {}", database.display(), copy.display()),
            why: error.to_string(),
        })?;
    }
    Ok(copy)
}
