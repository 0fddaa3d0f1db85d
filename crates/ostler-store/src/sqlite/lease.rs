//! SQL statements about leases.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use super::chain::{Hash, seed};
use super::fault::Fault;
use super::forget;
use super::int;
use super::writer::Cx;
use crate::{Error, Lease, StreamId, Timestamp};

/// Frees all leases of an earlier process: no other process can use the folder.
pub(super) const FREE_ALL: &str = "
    UPDATE stream SET owner = NULL, lease_until = 0 WHERE owner IS NOT NULL;
    UPDATE due SET owner = NULL, lease_until = 0 WHERE owner IS NOT NULL;";

/// The stored state of a stream.
pub(super) struct State {
    pub(super) id: i64,
    pub(super) epoch: u64,
    pub(super) owner: Option<String>,
    pub(super) until: Timestamp,
    pub(super) head: u64,
    pub(super) hash: Hash,
    pub(super) at: Timestamp,
}

pub(super) fn state(cx: &Cx<'_>, stream: &StreamId) -> Result<Option<State>, Fault> {
    let sql = "SELECT id, epoch, owner, lease_until, head, hash, at FROM stream WHERE name = ?";
    let mut statement = cx.connection.prepare_cached(sql)?;
    let state = statement.query_row([stream.as_str()], |row| {
        Ok(State {
            id: row.get(0)?,
            epoch: row.get(1)?,
            owner: row.get(2)?,
            until: Timestamp::from_millis(row.get(3)?),
            head: row.get(4)?,
            hash: row.get(5)?,
            at: Timestamp::from_millis(row.get(6)?),
        })
    });
    Ok(state.optional()?)
}

/// The stream, if the lease is still valid.
pub(super) fn held(cx: &Cx<'_>, lease: &Lease) -> Result<State, Fault> {
    let state = state(cx, &lease.stream)?.filter(|state| {
        state.epoch == lease.epoch
            && state.owner.as_deref() == Some(&lease.owner)
            && !cx.is_lost(&lease.stream, lease.epoch)
    });
    state.ok_or_else(|| Error::Fenced { what: lease.stream.to_string(), epoch: lease.epoch }.into())
}

pub(super) fn claim(
    cx: &Cx<'_>,
    stream: &StreamId,
    owner: &str,
    lasting: Duration,
) -> Result<Lease, Fault> {
    let now = cx.time.steady();
    let state = state(cx, stream)?;
    if let Some(State { owner: Some(by), until, .. }) = &state
        && by != owner
        && *until > now
    {
        let (stream, by, until) = (stream.clone(), by.clone(), *until);
        return Err(Error::Held { stream, by, until }.into());
    }
    let epoch = match state {
        Some(state) => state.epoch,
        None => forget::last_epoch(cx.connection)?,
    } + 1;
    let until = now.after(lasting);
    let sql = "INSERT INTO stream (name, epoch, owner, lease_until, head, hash, at)
        VALUES (?1, ?2, ?3, ?4, 0, ?5, 0)
        ON CONFLICT (name) DO UPDATE SET epoch = ?2, owner = ?3, lease_until = ?4";
    cx.connection.prepare_cached(sql)?.execute(params![
        stream.as_str(),
        int(epoch),
        owner,
        until.as_millis(),
        seed(stream)
    ])?;
    Ok(Lease { stream: stream.clone(), owner: owner.to_owned(), epoch, until })
}

pub(super) fn renew(cx: &Cx<'_>, lease: &Lease, lasting: Duration) -> Result<Lease, Fault> {
    let state = held(cx, lease)?;
    let until = cx.time.steady().after(lasting);
    let sql = "UPDATE stream SET lease_until = ? WHERE id = ?";
    cx.connection.prepare_cached(sql)?.execute(params![until.as_millis(), state.id])?;
    Ok(Lease { until, ..lease.clone() })
}

pub(super) fn release(cx: &Cx<'_>, lease: &Lease) -> Result<(), Fault> {
    let state = held(cx, lease)?;
    let sql = "UPDATE stream SET owner = NULL, lease_until = 0 WHERE id = ?";
    cx.connection.prepare_cached(sql)?.execute([state.id])?;
    Ok(())
}
