//! A check of everything that is stored.

use rusqlite::Connection;

use super::fault::Fault;
use super::log;
use crate::{Error, StreamId};

/// Everything that is damaged.
pub(super) fn all(connection: &Connection) -> Result<Vec<Error>, Fault> {
    let mut damages = structure(connection)?;
    for name in names(connection)? {
        let Ok(stream) = StreamId::new(&name) else {
            let why = "this is not a valid stream name".to_owned();
            damages.push(Error::Damaged { what: format!("the stream {name:?}"), why });
            continue;
        };
        match log::verify(connection, &stream) {
            Ok(()) => {}
            Err(Fault::Refused(error @ Error::Damaged { .. })) => damages.push(error),
            Err(fault) => return Err(fault),
        }
    }
    Ok(damages)
}

/// SQLite's own integrity check. It does not detect changes inside a text.
fn structure(connection: &Connection) -> Result<Vec<Error>, Fault> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    let found = found.collect::<rusqlite::Result<Vec<String>>>()?;
    let damaged = found.into_iter().filter(|line| line != "ok");
    Ok(damaged.map(|why| Error::Damaged { what: "the database".to_owned(), why }).collect())
}

/// One stream after the other, so that reading a long one does not block checkpoints for all of them.
fn names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM stream ORDER BY id")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}
