//! SQL statements about events: append, read, verify.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::chain::{Hash, Link, seed};
use super::fault::Fault;
use super::writer::Cx;
use super::{draft, int, lease, record};
use crate::{Body, Error, Event, Lease, NewEvent, Put, StreamId, Timestamp};

/// The limit of one read, in bytes of bodies; at most one event exceeds it.
const MOST_BYTES: usize = 1 << 20;

pub(super) fn append(
    cx: &mut Cx<'_>,
    lease: &Lease,
    events: &[NewEvent],
    puts: &[Put],
) -> Result<Vec<Event>, Fault> {
    let mut state = lease::held(cx, lease)?;
    let stream = &lease.stream;
    let mut known = Vec::with_capacity(events.len());
    for event in events {
        known.push(match &event.key {
            Some(key) => by_key(cx.connection, stream, state.id, key)?,
            None => None,
        });
    }
    if !known.is_empty() && known.iter().all(Option::is_some) {
        return Ok(known.into_iter().flatten().collect());
    }
    let at = cx.time.wall().max(state.at);
    let mut done: Vec<Event> = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        // One request may have the same key twice.
        let earlier = || {
            let twin = events[..index].iter().position(|e| e.key.is_some() && e.key == event.key);
            twin.map(|twin| done[twin].clone())
        };
        if let Some(there) = known[index].take().or_else(earlier) {
            done.push(there);
            continue;
        }
        let seq = state.head + 1;
        if let Some(whole) = &event.draft {
            draft::insert(cx.connection, state.id, seq, at, whole, event)?;
        }
        if let Some(wholes) = &event.drops {
            draft::drop_all(cx.connection, state.id, wholes)?;
        }
        let link = Link {
            seq,
            at,
            epoch: lease.epoch,
            kind: &event.kind,
            body: event.body.as_str(),
            key: event.key.as_deref(),
        };
        state.head = link.seq;
        if event.draft.is_none() {
            state.hash = link.hash(&state.hash);
            insert(cx.connection, state.id, &link, &state.hash)?;
        }
        let added = Event {
            stream: stream.clone(),
            seq: link.seq,
            at,
            kind: event.kind.clone(),
            body: event.body.clone(),
        };
        cx.added.push(added.clone());
        done.push(added);
    }
    let sql = "UPDATE stream SET head = ?, hash = ?, at = ? WHERE id = ? AND epoch = ?";
    cx.connection.prepare_cached(sql)?.execute(params![
        int(state.head),
        state.hash,
        at.as_millis(),
        state.id,
        int(lease.epoch)
    ])?;
    record::put(cx, puts)?;
    if puts.is_empty() && !events.is_empty() && events.iter().all(|event| !event.durable) {
        cx.fleeting = Some((stream.clone(), lease.epoch));
    }
    Ok(done)
}

fn insert(
    connection: &Connection,
    stream: i64,
    link: &Link<'_>,
    hash: &Hash,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO event (stream, seq, at, epoch, kind, key, hash, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.insert(params![
        stream,
        int(link.seq),
        link.at.as_millis(),
        int(link.epoch),
        link.kind,
        link.key,
        hash,
        link.body
    ])?;
    Ok(())
}

fn by_key(
    connection: &Connection,
    stream: &StreamId,
    id: i64,
    key: &str,
) -> Result<Option<Event>, Fault> {
    let sql = "SELECT seq, at, kind, body FROM event WHERE stream = ? AND key = ?";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row(params![id, key], |row| {
        let (seq, at): (u64, i64) = (row.get(0)?, row.get(1)?);
        Ok((seq, at, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
    });
    let Some((seq, at, kind, text)) = found.optional()? else { return Ok(None) };
    let body =
        Body::from_text(text).map_err(|_| damaged(stream, seq, "its body is not valid JSON"))?;
    Ok(Some(Event { stream: stream.clone(), seq, at: Timestamp::from_millis(at), kind, body }))
}

pub(super) fn head(connection: &Connection, stream: &StreamId) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached("SELECT head FROM stream WHERE name = ?")?;
    let head = statement.query_row([stream.as_str()], |row| row.get(0)).optional()?;
    Ok(head.unwrap_or(0))
}

pub(super) fn read_from(
    connection: &Connection,
    stream: &StreamId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::new();
    let mut bytes = 0;
    let Some(mut walk) = Walk::start(connection, stream, after)? else { return Ok(events) };
    walk.each(connection, limit, |event| {
        bytes += event.body.as_str().len();
        events.push(event);
        bytes < MOST_BYTES
    })?;
    Ok(events)
}

/// Verifies every event, and that the last one is the last that was appended.
pub(super) fn verify(connection: &Connection, stream: &StreamId) -> Result<(), Fault> {
    // One transaction, so that both queries see the same state.
    let moment = connection.unchecked_transaction()?;
    let sql = "SELECT head, hash FROM stream WHERE name = ?";
    let last = moment
        .prepare_cached(sql)?
        .query_row([stream.as_str()], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, Hash>(1)?)));
    let Some((head, hash)) = last.optional()? else { return Ok(()) };
    let Some(mut walk) = Walk::start(&moment, stream, 0)? else { return Ok(()) };
    walk.each(&moment, usize::MAX, |_| true)?;
    if walk.hash != hash {
        let why = "it is missing, or not the one that was added last";
        return Err(damaged(stream, head, why).into());
    }
    Ok(())
}

/// A walk along the hash chain.
struct Walk<'a> {
    stream: &'a StreamId,
    id: i64,
    /// The last event or draft passed.
    seq: u64,
    /// The hash of the last event passed; drafts are not in the chain.
    hash: Hash,
}

impl<'a> Walk<'a> {
    /// Starts after `after`. `None` if there is no such stream.
    fn start(
        connection: &Connection,
        stream: &'a StreamId,
        after: u64,
    ) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT id, base, base_hash FROM stream WHERE name = ?";
        let mut statement = connection.prepare_cached(sql)?;
        let there = statement.query_row([stream.as_str()], |row| {
            Ok((row.get(0)?, row.get::<_, u64>(1)?, row.get::<_, Option<Hash>>(2)?))
        });
        let Some((id, base, base_hash)) = there.optional()? else { return Ok(None) };
        let sql = "SELECT hash FROM event WHERE stream = ? AND seq <= ? ORDER BY seq DESC LIMIT 1";
        let mut statement = connection.prepare_cached(sql)?;
        let hash = statement.query_row(params![id, int(after)], |row| row.get(0)).optional()?;
        let hash = hash.or(base_hash).unwrap_or_else(|| seed(stream));
        Ok(Some(Self { stream, id, seq: after.max(base), hash }))
    }

    /// Passes on each verified event until the receiver has enough.
    fn each(
        &mut self,
        connection: &Connection,
        limit: usize,
        mut receive: impl FnMut(Event) -> bool,
    ) -> Result<(), Fault> {
        let sql = "SELECT seq, at, epoch, kind, key, hash, body FROM event
            WHERE stream = ?1 AND seq > ?2
            UNION ALL SELECT seq, at, 0, kind, NULL, NULL, body FROM draft
            WHERE stream = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
        let mut statement = connection.prepare_cached(sql)?;
        let limit = int(limit as u64);
        let mut rows = statement.query(params![self.id, int(self.seq), limit])?;
        while let Some(row) = rows.next()? {
            let event = self.step(row)?;
            if !receive(event) {
                break;
            }
        }
        Ok(())
    }

    fn step(&mut self, row: &Row<'_>) -> Result<Event, Fault> {
        let next = row.get::<_, u64>(0).unwrap_or(self.seq + 1);
        let unreadable = |error: rusqlite::Error| damaged(self.stream, next, error);
        let is_draft = row.get_ref(5).is_ok_and(|hash| hash == ValueRef::Null);
        if is_draft {
            self.seq = next;
            return read_event(row, self.stream).map_err(|error| unreadable(error).into());
        }
        let (event, hash) = read_row(row, self.stream, &self.hash).map_err(unreadable)?;
        let Some(hash) = hash else {
            let why = "it is not what was written, or one before it is missing";
            return Err(damaged(self.stream, next, why).into());
        };
        (self.seq, self.hash) = (next, hash);
        Ok(event)
    }
}

/// The event, if its hash is right.
fn read_row(
    row: &Row<'_>,
    stream: &StreamId,
    previous: &Hash,
) -> rusqlite::Result<(Event, Option<Hash>)> {
    let text = |index| row.get_ref(index)?.as_str().map_err(rusqlite::Error::from);
    let link = Link {
        seq: row.get(0)?,
        at: Timestamp::from_millis(row.get(1)?),
        epoch: row.get(2)?,
        kind: text(3)?,
        body: text(6)?,
        key: row.get_ref(4)?.as_str_or_null()?,
    };
    let hash: Hash = row.get(5)?;
    let event = read_event(row, stream)?;
    Ok((event, (link.hash(previous) == hash).then_some(hash)))
}

fn read_event(row: &Row<'_>, stream: &StreamId) -> rusqlite::Result<Event> {
    let body = Body::from_text(row.get(6)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(6, rusqlite::types::Type::Text, error.into())
    })?;
    let at = Timestamp::from_millis(row.get(1)?);
    Ok(Event { stream: stream.clone(), seq: row.get(0)?, at, kind: row.get(3)?, body })
}

fn damaged(stream: &StreamId, seq: u64, why: impl ToString) -> Error {
    Error::Damaged { what: format!("event {seq} of {stream}"), why: why.to_string() }
}
