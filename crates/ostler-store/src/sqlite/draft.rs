//! SQL statements about drafts.

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::int;
use crate::{Body, Error, Event, NewEvent, StreamId, Timestamp};

pub(super) fn insert(
    connection: &Connection,
    stream: i64,
    seq: u64,
    at: Timestamp,
    whole: &str,
    event: &NewEvent,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO draft (stream, seq, at, kind, part, body) VALUES (?, ?, ?, ?, ?, ?)";
    let (at, body) = (at.as_millis(), event.body.as_str());
    connection
        .prepare_cached(sql)?
        .execute(params![stream, int(seq), at, event.kind, whole, body])
        .map(drop)
}

pub(super) fn drop_all(connection: &Connection, stream: i64, wholes: &str) -> rusqlite::Result<()> {
    let sql = "DELETE FROM draft WHERE stream = ? AND part >= ? AND part < ?";
    // The highest character, which no name contains.
    let end = format!("{wholes}{}", char::MAX);
    connection.prepare_cached(sql)?.execute(params![stream, wholes, end]).map(drop)
}

/// The drafts that no event has dropped, in order.
pub(super) fn all(connection: &Connection, stream: &StreamId) -> Result<Vec<Event>, Fault> {
    let mut statement = connection.prepare_cached("SELECT id FROM stream WHERE name = ?")?;
    let id: Option<i64> = statement.query_row([stream.as_str()], |row| row.get(0)).optional()?;
    let sql = "SELECT seq, at, kind, body FROM draft WHERE stream = ? ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    let mut drafts = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: u64 = row.get(0)?;
        let body = Body::from_text(row.get(3)?).map_err(|error| {
            let what = format!("event {seq} of {stream}");
            Error::Damaged { what, why: error.to_string() }
        })?;
        let at = Timestamp::from_millis(row.get(1)?);
        drafts.push(Event { stream: stream.clone(), seq, at, kind: row.get(2)?, body });
    }
    Ok(drafts)
}
