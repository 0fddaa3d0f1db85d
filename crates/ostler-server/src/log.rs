//! The event log as its readers see it: everything from a number on, and then what comes, as it comes.
//!
//! What was added lately is kept in memory, already in the form of a server-sent event, so that a thousand readers of
//! one session cost one serialisation and no reads of the store. It is a cache and nothing else: what is not in it is
//! read from the store, and only what the store has taken is ever put into it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use ostler_store::{Event, Lease, NewEvent, Put, Store, StreamId};
use tokio::sync::watch;

use crate::fault::{ApiError, Fallible};

/// How many events of a session are kept in memory.
const TAIL: usize = 1_024;
/// How many are read from the store at once.
const STEP: usize = 256;

/// The log of all sessions.
#[derive(Clone)]
pub(crate) struct Log {
    store: Arc<dyn Store>,
    tails: Arc<Mutex<HashMap<StreamId, Weak<Tail>>>>,
}

/// An event, and what is made of it for those who read.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) event: Event,
    sse: OnceLock<Bytes>,
}

impl Logged {
    fn new(event: Event) -> Arc<Self> {
        Arc::new(Self { event, sse: OnceLock::new() })
    }

    /// As a server-sent event with its number.
    pub(crate) fn sse(&self) -> Bytes {
        let event = &self.event;
        self.sse
            .get_or_init(|| {
                format!(
                    "id: {}\nevent: {}\ndata: {}\n\n",
                    event.seq,
                    event.kind,
                    event.body.as_str()
                )
                .into()
            })
            .clone()
    }
}

/// The newest events of a session.
struct Tail {
    events: Mutex<BTreeMap<u64, Arc<Logged>>>,
}

impl Tail {
    fn add(&self, events: impl IntoIterator<Item = Arc<Logged>>) {
        let mut kept = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(events.into_iter().map(|logged| (logged.event.seq, logged)));
        while kept.len() > TAIL {
            kept.pop_first();
        }
    }

    /// What follows a number without a gap.
    fn after(&self, seq: u64) -> Vec<Arc<Logged>> {
        let kept = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let following = kept.range(seq + 1..);
        following
            .zip(seq + 1..)
            .take_while(|((at, _), next)| *at == next)
            .map(|((_, it), _)| Arc::clone(it))
            .collect()
    }
}

impl Log {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, tails: Arc::default() }
    }

    /// Whoever holds the lease writes.
    pub(crate) fn writer(&self, lease: Lease) -> Writer {
        let tail = self.tail(&lease.stream);
        Writer { store: Arc::clone(&self.store), lease: Arc::new(Mutex::new(lease)), tail }
    }

    /// Reads a session's events after a number.
    pub(crate) fn reader(&self, stream: &StreamId, after: u64) -> Reader {
        let tail = self.tail(stream);
        Reader {
            head: self.store.follow(stream),
            tail,
            store: Arc::clone(&self.store),
            stream: stream.clone(),
            after,
        }
    }

    /// A part of a session's events, after a number.
    pub(crate) async fn read(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Fallible<Vec<Event>> {
        Ok(self.store.read_from(stream, after, limit).await?)
    }

    /// The number of the last event of a session that can be read.
    pub(crate) async fn head(&self, stream: &StreamId) -> Fallible<u64> {
        Ok(self.store.head(stream).await?)
    }

    fn tail(&self, stream: &StreamId) -> Arc<Tail> {
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = tails.get(stream).and_then(Weak::upgrade) {
            return tail;
        }
        // Those that nobody reads or writes any more go when others come.
        if tails.len() >= 64 && tails.len().is_power_of_two() {
            tails.retain(|_, tail| tail.strong_count() > 0);
        }
        let tail = Arc::new(Tail { events: Mutex::default() });
        tails.insert(stream.clone(), Arc::downgrade(&tail));
        tail
    }
}

/// Adds to the log of one session.
#[derive(Clone)]
pub(crate) struct Writer {
    store: Arc<dyn Store>,
    lease: Arc<Mutex<Lease>>,
    tail: Arc<Tail>,
}

impl Writer {
    /// Adds events and changes documents, all or nothing.
    pub(crate) async fn append(
        &self,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<Vec<Arc<Logged>>, ostler_store::Error> {
        let lease = self.lease();
        let events = self.store.append(&lease, events, puts).await?;
        let logged: Vec<_> = events.into_iter().map(Logged::new).collect();
        self.tail.add(logged.iter().cloned());
        Ok(logged)
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn renew(&self, by: std::time::Duration) -> Result<(), ostler_store::Error> {
        let renewed = self.store.renew(&self.lease(), by).await?;
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        Ok(())
    }

    pub(crate) async fn release(&self) -> Result<(), ostler_store::Error> {
        self.store.release(&self.lease()).await
    }
}

/// Reads the log of one session.
pub(crate) struct Reader {
    head: watch::Receiver<u64>,
    tail: Arc<Tail>,
    store: Arc<dyn Store>,
    stream: StreamId,
    after: u64,
}

impl Reader {
    /// What has come since the last call; waits until there is something. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Fallible<Vec<Arc<Logged>>> {
        loop {
            self.head.mark_unchanged();
            let some = self.ready().await?;
            if !some.is_empty() {
                return Ok(some);
            }
            if self.head.changed().await.is_err() {
                return Err(ApiError::unavailable("closed", "the event log is closed"));
            }
        }
    }

    /// What has come since the last call, if anything.
    pub(crate) async fn ready(&mut self) -> Fallible<Vec<Arc<Logged>>> {
        let head = *self.head.borrow();
        // What is not on disk yet may never be, and its number may come to mean something else.
        let mut some = self.tail.after(self.after);
        some.retain(|logged| logged.event.seq <= head);
        if some.is_empty() && head > self.after {
            let events = self.store.read_from(&self.stream, self.after, STEP).await?;
            some = events.into_iter().map(Logged::new).collect();
        }
        if let Some(last) = some.last() {
            self.after = last.event.seq;
        }
        Ok(some)
    }
}
