//! SQL statements about timers.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::fault::Fault;
use super::int;
use super::writer::Cx;
use crate::{Body, Due, DueClaim, Error, Timestamp};

pub(super) fn schedule(cx: &Cx<'_>, due: &Due) -> Result<(), Fault> {
    let sql = "INSERT INTO due (id, at, body, epoch, owner, lease_until)
        VALUES (?1, ?2, ?3, 0, NULL, 0)
        ON CONFLICT (id) DO UPDATE
        SET at = ?2, body = ?3, epoch = 0, owner = NULL, lease_until = 0";
    let at = due.at.as_millis();
    cx.connection.prepare_cached(sql)?.execute(params![due.id, at, due.body.as_str()])?;
    Ok(())
}

pub(super) fn claim(
    cx: &Cx<'_>,
    owner: &str,
    lasting: Duration,
    limit: usize,
) -> Result<Vec<DueClaim>, Fault> {
    let now = cx.time.steady();
    let until = now.after(lasting);
    let mut claims = Vec::new();
    for due in waiting(cx.connection, cx.time.wall(), now, limit)? {
        let epoch = next_epoch(cx.connection)?;
        let sql = "UPDATE due SET epoch = ?, owner = ?, lease_until = ? WHERE id = ?";
        let mut statement = cx.connection.prepare_cached(sql)?;
        statement.execute(params![int(epoch), owner, until.as_millis(), due.id])?;
        claims.push(DueClaim { due, owner: owner.to_owned(), epoch, until });
    }
    Ok(claims)
}

/// Timers that are due and unclaimed, the earliest first.
fn waiting(
    connection: &Connection,
    wall: Timestamp,
    steady: Timestamp,
    limit: usize,
) -> Result<Vec<Due>, Fault> {
    let sql = "SELECT id, at, body FROM due
        WHERE at <= ? AND (owner IS NULL OR lease_until <= ?) ORDER BY at, id LIMIT ?";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = int(limit as u64);
    let mut rows = statement.query(params![wall.as_millis(), steady.as_millis(), limit])?;
    let mut waiting = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let body = Body::from_text(row.get(2)?)
            .map_err(|error| Error::Damaged { what: id.clone(), why: error.to_string() })?;
        waiting.push(Due { id, at: Timestamp::from_millis(row.get(1)?), body });
    }
    Ok(waiting)
}

/// One counter for all timers: an id can be removed and scheduled again, and old claims on it must stay invalid.
fn next_epoch(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "UPDATE counter SET value = value + 1 WHERE name = 'due_epoch' RETURNING value";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

pub(super) fn complete(
    cx: &Cx<'_>,
    claim: &DueClaim,
    next: Option<Timestamp>,
) -> Result<(), Fault> {
    let (id, epoch) = (&claim.due.id, int(claim.epoch));
    let changed = match next {
        Some(at) => {
            let sql = "UPDATE due SET at = ?, epoch = 0, owner = NULL, lease_until = 0
                WHERE id = ? AND epoch = ? AND owner = ?";
            let mut statement = cx.connection.prepare_cached(sql)?;
            statement.execute(params![at.as_millis(), id, epoch, claim.owner])?
        }
        None => {
            let sql = "DELETE FROM due WHERE id = ? AND epoch = ? AND owner = ?";
            cx.connection.prepare_cached(sql)?.execute(params![id, epoch, claim.owner])?
        }
    };
    if changed == 0 {
        return Err(Error::Fenced { what: id.clone(), epoch: claim.epoch }.into());
    }
    Ok(())
}

pub(super) fn unschedule(cx: &Cx<'_>, id: &str) -> Result<(), Fault> {
    cx.connection.prepare_cached("DELETE FROM due WHERE id = ?")?.execute([id])?;
    Ok(())
}
