//! SQL statements that delete for good: a stream, its beginning, and free space in the file.
//!
//! Deleted data is overwritten (`secure_delete`, see `schema`), and the write-ahead log is emptied afterwards: until
//! then it still has the old pages.

use rusqlite::{Connection, OptionalExtension, params};

use super::chain::Hash;
use super::fault::Fault;
use super::writer::Cx;
use super::{int, record};
use crate::{Error, Expected, StreamId};

/// How many pages one commit returns to the file system.
const PAGES: u32 = 2_000;

/// The highest epoch of all deleted streams.
pub(super) fn last_epoch(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT value FROM counter WHERE name = 'forgotten_epoch'";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

pub(super) fn forget(
    cx: &mut Cx<'_>,
    stream: &StreamId,
    records: &[(String, String)],
) -> Result<(), Fault> {
    for (kind, id) in records {
        record::remove(cx, kind, id, Expected::Any)?;
    }
    let Some((id, epoch)) = find(cx.connection, stream)? else { return Ok(()) };
    cx.connection.prepare_cached("DELETE FROM event WHERE stream = ?")?.execute([id])?;
    cx.connection.prepare_cached("DELETE FROM draft WHERE stream = ?")?.execute([id])?;
    cx.connection.prepare_cached("DELETE FROM stream WHERE id = ?")?.execute([id])?;
    let sql = "UPDATE counter SET value = max(value, ?) WHERE name = 'forgotten_epoch'";
    cx.connection.prepare_cached(sql)?.execute([epoch])?;
    Ok(())
}

fn find(connection: &Connection, stream: &StreamId) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut statement = connection.prepare_cached("SELECT id, epoch FROM stream WHERE name = ?")?;
    let found = statement.query_row([stream.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()
}

pub(super) fn trim(cx: &mut Cx<'_>, stream: &StreamId, before: u64) -> Result<(), Fault> {
    let Some((id, _)) = find(cx.connection, stream)? else { return Ok(()) };
    let sql = "SELECT seq, hash FROM event WHERE stream = ? AND seq < ? ORDER BY seq DESC LIMIT 1";
    let mut statement = cx.connection.prepare_cached(sql)?;
    let last = statement
        .query_row(params![id, int(before)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Hash>(1)?))
        })
        .optional()?;
    let Some((seq, hash)) = last else { return Ok(()) };
    for table in ["event", "draft"] {
        let sql = format!("DELETE FROM {table} WHERE stream = ? AND seq <= ?");
        cx.connection.prepare_cached(&sql)?.execute([id, seq])?;
    }
    let sql = "UPDATE stream SET base = ?, base_hash = ? WHERE id = ?";
    cx.connection.prepare_cached(sql)?.execute(params![seq, hash, id])?;
    Ok(())
}

/// Returns some free pages to the file system. `true` if more are left.
pub(super) fn shrink(cx: &mut Cx<'_>) -> Result<bool, Fault> {
    let free =
        || cx.connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, u32>(0));
    let before = free()?;
    let mut statement = cx.connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    // Each row is a page.
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    let after = free()?;
    // Stops if the database cannot shrink.
    Ok(after > 0 && after < before)
}

/// Empties the write-ahead log. Fails while a connection reads from it.
pub(super) fn empty_log(connection: &Connection) -> Result<(), Fault> {
    let busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy {
        let doing = "emptying the write-ahead log".to_owned();
        let why = "another connection reads it; it is emptied later".to_owned();
        return Err(Error::Failed { doing, why }.into());
    }
    Ok(())
}
