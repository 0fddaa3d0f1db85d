//! The tables, their upgrades, and the settings of a connection.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use super::folder::{Folder, make_private, sync_folder};
use crate::Error;

/// Older versions can corrupt a database that has several connections and a write-ahead log.
const OLDEST_SQLITE: i32 = 3_051_003;

/// Marks the file as a database of this program: `ostl`.
const APPLICATION: i32 = 0x6f73_746c;

/// Upgrades the tables from one version to the next.
pub(super) type Step = fn(&Connection) -> rusqlite::Result<()>;

/// The step at index N upgrades version N to N + 1. Steps are added, never changed.
pub(super) const STEPS: &[Step] = &[
    |connection| connection.execute_batch(include_str!("schema/1.sql")),
    |connection| connection.execute_batch(include_str!("schema/2.sql")),
    |connection| connection.execute_batch(include_str!("schema/3.sql")),
    |connection| connection.execute_batch(include_str!("schema/4.sql")),
    |connection| connection.execute_batch(include_str!("schema/5.sql")),
];

/// Upgrades the database to the version of this program, after a backup.
pub(super) fn prepare(folder: &Folder, steps: &[Step]) -> Result<Connection, Error> {
    let failed = |why: String| Error::Open { place: folder.path().display().to_string(), why };
    let sqlite = rusqlite::version_number();
    if sqlite < OLDEST_SQLITE {
        return Err(failed(format!(
            "SQLite {} is too old to be safe; 3.51.3 or newer is needed",
            rusqlite::version()
        )));
    }
    let open_error = |error: rusqlite::Error| failed(format!("preparing the database: {error}"));
    let mut connection = connect(&folder.database()).map_err(open_error)?;
    let found = version(&connection).map_err(open_error)?;
    if found > steps.len() {
        return Err(failed(format!(
            "a newer program wrote it (version {found}, this one knows {}); use the newer program",
            steps.len()
        )));
    }
    let application: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(open_error)?;
    let tables: u32 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(open_error)?;
    if tables > 0 && application != APPLICATION {
        return Err(failed(
            "the database in it belongs to another program; use another folder".to_owned(),
        ));
    }
    if found > 0 && found < steps.len() {
        let copy = folder.path().join(format!("before-version-{}.db", found + 1));
        // A backup left by a failed attempt is of the same version, and may be incomplete.
        _ = std::fs::remove_file(&copy);
        back_up(&connection, &copy)?;
    }
    for (index, step) in steps.iter().enumerate().skip(found) {
        upgrade(&mut connection, index + 1, *step).map_err(open_error)?;
    }
    give_back_space(&connection).map_err(open_error)?;
    Ok(connection)
}

/// Performs a step in one transaction.
fn upgrade(connection: &mut Connection, to: usize, step: Step) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    step(&transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", to as i64)?;
    transaction.commit()
}

/// Whether this program can read the database without an upgrade; the error says why not.
pub(super) fn check_ours(connection: &Connection) -> Result<(), String> {
    let number = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
            .map_err(|error| error.to_string())
    };
    if number("application_id")? != APPLICATION {
        return Err("it is not a database of this program".to_owned());
    }
    match usize::try_from(number("user_version")?) {
        Ok(version) if version == STEPS.len() => Ok(()),
        Ok(version) if version < STEPS.len() => Err(
            "an earlier version wrote it; start `ostler serve` on it once, which backs it up and upgrades it"
                .to_owned(),
        ),
        _ => Err("a newer program wrote it; use the newer program".to_owned()),
    }
}

/// From now on the file shrinks after deletions. That requires the database to be rewritten once.
fn give_back_space(connection: &Connection) -> rusqlite::Result<()> {
    const INCREMENTAL: u32 = 2;
    let mode: u32 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if mode != INCREMENTAL {
        connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
        connection.execute_batch("VACUUM")?;
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
        .map(|v| v as usize)
}

/// Opens a connection that can write.
pub(super) fn connect(database: &Path) -> rusqlite::Result<Connection> {
    // Not `CREATE`: the file exists already, with the right permissions.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(sqlite_error(format!("SQLite offers no write-ahead log here, only {mode}")));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Only Apple's systems know these; without them a disk there may delay writes that it has acknowledged.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Overwrites deleted data; otherwise its text would stay in the file.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    Ok(connection)
}

/// Writes the database as of this moment to a new file; others continue to write meanwhile.
pub(super) fn back_up(connection: &Connection, to: &Path) -> Result<(), Error> {
    let failed =
        |why: String| Error::Failed { doing: format!("backing up to {}", to.display()), why };
    if to.exists() {
        return Err(failed("the file exists already; use another name".to_owned()));
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let copied = copy(connection, part).and_then(|()| {
        // A link instead of a rename, which would replace a file that appeared meanwhile.
        std::fs::hard_link(part, to).map_err(|error| error.to_string())?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        sync_folder(folder.unwrap_or(Path::new("."))).map_err(|error| error.to_string())
    });
    _ = std::fs::remove_file(part);
    copied.map_err(failed)
}

fn copy(connection: &Connection, part: &Path) -> Result<(), String> {
    _ = std::fs::remove_file(part);
    make_private(part).map_err(|error| error.to_string())?;
    let copied = (|| {
        let mut target = Connection::open_with_flags(part, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // In one step; otherwise every concurrent write would restart it.
        let result = Backup::new(connection, &mut target)?.step(-1)?;
        if result != StepResult::Done {
            return Err(sqlite_error(format!("it ended with {result:?}")));
        }
        // A complete database without a write-ahead log.
        target.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
    })();
    copied.map_err(|error: rusqlite::Error| error.to_string())?;
    std::fs::File::open(part).and_then(|file| file.sync_all()).map_err(|error| error.to_string())
}

fn sqlite_error(message: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ERROR), Some(message))
}

#[cfg(test)]
mod tests;
