//! The event log as its readers see it: everything from a number on, and then what comes, as it comes.
//!
//! What was added lately is kept in memory, already in the form of a server-sent event, so that a thousand readers of
//! one session cost one serialisation and no reads of the store. It is a cache and nothing else: what is not in it is
//! read from the store, and only what the store has taken is ever put into it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use ostler_base::error::{self, ApiError, Fallible};
use ostler_store::{Event, Lease, NewEvent, Put, Store, StreamId};
use tokio::sync::{Semaphore, watch};

/// How many events of a session are kept in memory, and how many bytes of them; passed by one event at most.
const TAIL: usize = 1_024;
const TAIL_BYTES: usize = 1 << 20;
/// How many are read from the store at once.
const STEP: usize = 256;
/// How many pages of the past are read from the store at the same time, for all who read.
const PAST_READS: usize = 2;

/// The log of all sessions.
#[derive(Clone)]
pub struct Log {
    store: Arc<dyn Store>,
    tails: Arc<Mutex<HashMap<StreamId, Weak<Tail>>>>,
    /// Reading the past must not take the place of everything else that is read from the store.
    past_reads: Arc<Semaphore>,
}

/// An event, and what is made of it for those who read.
#[derive(Debug)]
pub struct Logged {
    pub event: Event,
    sse: OnceLock<Bytes>,
}

impl Logged {
    fn new(event: Event) -> Arc<Self> {
        Arc::new(Self { event, sse: OnceLock::new() })
    }

    fn bytes(&self) -> usize {
        self.event.body.as_str().len()
    }

    /// As a server-sent event with its number.
    pub fn sse(&self) -> Bytes {
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

/// A part of a session's past, as it was read from the store.
type PastPage = Arc<[Arc<Logged>]>;

/// What is in memory of a session: the newest events, and the pages of the past that somebody reads.
#[derive(Default)]
struct Tail {
    kept: Mutex<Newest>,
    /// By the number that they follow. A page is here for as long as a reader has it, so that hundreds of readers who join
    /// at the same place cost one read, one rendering and one copy.
    pages: Mutex<HashMap<u64, Weak<[Arc<Logged>]>>>,
    /// Held while a page is read: others who want the same one wait for it.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Newest {
    events: BTreeMap<u64, Arc<Logged>>,
    bytes: usize,
}

impl Tail {
    fn add(&self, events: impl IntoIterator<Item = Arc<Logged>>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for logged in events {
            kept.bytes += logged.bytes();
            if let Some(before) = kept.events.insert(logged.event.seq, logged) {
                kept.bytes -= before.bytes();
            }
        }
        while kept.events.len() > TAIL || (kept.bytes > TAIL_BYTES && kept.events.len() > 1) {
            let Some((_, oldest)) = kept.events.pop_first() else { break };
            kept.bytes -= oldest.bytes();
        }
    }

    /// Whether events follow a number, and the first of them is no longer here.
    fn is_past(&self, seq: u64) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.events.first_key_value().is_some_and(|(first, _)| *first > seq + 1)
    }

    /// A page of the past, if somebody has it.
    fn page(&self, after: u64) -> Option<PastPage> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).get(&after)?.upgrade()
    }

    fn share(&self, after: u64, page: &PastPage) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|_, page| page.strong_count() > 0);
        pages.insert(after, Arc::downgrade(page));
    }

    /// What follows a number without a gap.
    fn after(&self, seq: u64) -> Vec<Arc<Logged>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let following = kept.events.range(seq + 1..);
        following
            .zip(seq + 1..)
            .take_while(|((at, _), next)| *at == next)
            .map(|((_, it), _)| Arc::clone(it))
            .collect()
    }
}

impl Log {
    pub fn new(store: Arc<dyn Store>) -> Self {
        let past_reads = Arc::new(Semaphore::new(PAST_READS));
        Self { store, tails: Arc::default(), past_reads }
    }

    /// Whoever holds the lease writes.
    pub(crate) fn writer(&self, lease: Lease) -> Writer {
        let tail = self.tail(&lease.stream);
        Writer { store: Arc::clone(&self.store), lease: Arc::new(Mutex::new(lease)), tail }
    }

    /// Reads a session's events after a number.
    pub fn reader(&self, stream: &StreamId, after: u64) -> Reader {
        let tail = self.tail(stream);
        Reader {
            head: self.store.follow(stream),
            tail,
            store: Arc::clone(&self.store),
            stream: stream.clone(),
            after,
            was_live: false,
            page: None,
            past_reads: Arc::clone(&self.past_reads),
        }
    }

    /// The stream is gone from the store. One of the same name has other events, which begin at 1 again.
    pub fn forget(&self, stream: &StreamId) {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner).remove(stream);
    }

    /// A part of a session's events, after a number.
    pub async fn read(&self, stream: &StreamId, after: u64, limit: usize) -> Fallible<Vec<Event>> {
        Ok(self.store.read_from(stream, after, limit).await?)
    }

    /// What was streamed in a session and is not there as a whole.
    pub(crate) async fn drafts(&self, stream: &StreamId) -> Fallible<Vec<Event>> {
        Ok(self.store.drafts(stream).await?)
    }

    /// The number of the last event of a session that can be read.
    pub async fn head(&self, stream: &StreamId) -> Fallible<u64> {
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
        let tail = Arc::new(Tail::default());
        tails.insert(stream.clone(), Arc::downgrade(&tail));
        tail
    }
}

/// Adds to the log of one session.
#[derive(Clone)]
pub struct Writer {
    store: Arc<dyn Store>,
    lease: Arc<Mutex<Lease>>,
    tail: Arc<Tail>,
}

impl Writer {
    /// Adds events and changes documents, all or nothing.
    pub async fn append(
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

    pub fn lease(&self) -> Lease {
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
pub struct Reader {
    head: watch::Receiver<u64>,
    tail: Arc<Tail>,
    store: Arc<dyn Store>,
    stream: StreamId,
    after: u64,
    /// It has read everything there was.
    was_live: bool,
    /// The page of the past that it reads, which it shares with others.
    page: Option<PastPage>,
    past_reads: Arc<Semaphore>,
}

impl Reader {
    /// Whether it had read everything, and is now so far behind that what it needs is no longer in memory. Also says the
    /// number of the event that it has read last.
    pub fn fell_behind(&self) -> Option<u64> {
        (self.was_live && self.tail.is_past(self.after)).then_some(self.after)
    }

    /// What has come since the last call; waits until there is something. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Fallible<Vec<Arc<Logged>>> {
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
            some = self.past().await?.to_vec();
        } else if !some.is_empty() {
            self.page = None;
        }
        if let Some(last) = some.last() {
            self.after = last.event.seq;
        }
        self.was_live |= self.after >= head;
        Ok(some)
    }

    /// The next page of the past.
    async fn past(&mut self) -> Fallible<PastPage> {
        let page = match self.tail.page(self.after) {
            Some(page) => page,
            None => self.read_past().await?,
        };
        self.page = Some(Arc::clone(&page));
        Ok(page)
    }

    async fn read_past(&self) -> Fallible<PastPage> {
        let _reading = self.tail.reading.lock().await;
        // Somebody else may have read it while this reader waited.
        if let Some(page) = self.tail.page(self.after) {
            return Ok(page);
        }
        let _permit = self.past_reads.acquire().await.map_err(error::internal)?;
        let events = self.store.read_from(&self.stream, self.after, STEP).await?;
        let page: PastPage = events.into_iter().map(Logged::new).collect();
        self.tail.share(self.after, &page);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ostler_store::Sqlite;
    use serde_json::json;

    use super::*;

    async fn log() -> (tempfile::TempDir, Log) {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Sqlite::open(folder.path()).await.unwrap());
        (folder, Log::new(store))
    }

    /// Adds so many events, and lets go of what is in memory.
    async fn write(log: &Log, stream: &StreamId, text: &str, count: usize) {
        let lease = log.store.claim(stream, "node", Duration::from_secs(60)).await.unwrap();
        let writer = log.writer(lease);
        let events = (0..count).map(|_| NewEvent::new("said", json!(text))).collect();
        writer.append(events, Vec::new()).await.unwrap();
        writer.release().await.unwrap();
    }

    // Mutant: `share` that does nothing.
    #[tokio::test]
    async fn readers_who_join_at_the_same_place_share_what_is_read() {
        let (_folder, log) = log().await;
        let stream = StreamId::new("s").unwrap();
        write(&log, &stream, "before", 2 * STEP).await;
        let mut readers: Vec<Reader> = (0..50).map(|_| log.reader(&stream, 0)).collect();
        let reading = readers.iter_mut().map(|reader| reader.next());
        let pages: Vec<_> = futures::future::join_all(reading).await;
        let first = pages[0].as_ref().unwrap()[0].clone();
        for page in &pages {
            let page = page.as_ref().unwrap();
            assert_eq!(page.len(), STEP);
            assert!(Arc::ptr_eq(&page[0], &first), "each has a copy of its own");
        }
        // The next page, and what comes after it, are still right.
        let next = readers[0].next().await.unwrap();
        assert_eq!(next[0].event.seq, STEP as u64 + 1);
        write(&log, &stream, "after", 1).await;
        assert_eq!(readers[0].next().await.unwrap()[0].event.seq, 2 * STEP as u64 + 1);
        drop((pages, first, next, readers));
        let mut reader = log.reader(&stream, 0);
        reader.next().await.unwrap();
        let n_pages = reader.tail.pages.lock().unwrap().len();
        assert_eq!(n_pages, 1, "pages that nobody reads are gone");
    }

    // Mutant: `forget` that does nothing: whoever still reads the old stream keeps its events in memory.
    #[tokio::test]
    async fn a_stream_of_the_same_name_has_none_of_the_forgotten_events() {
        let (_folder, log) = log().await;
        let stream = StreamId::new("s").unwrap();
        write(&log, &stream, "secret", 3).await;
        let mut old = log.reader(&stream, 0);
        old.next().await.unwrap();
        log.store.forget(&stream, Vec::new()).await.unwrap();
        log.forget(&stream);
        // So many that the first ones are no longer among the newest.
        write(&log, &stream, "new", TAIL + 1).await;
        for event in log.reader(&stream, 0).next().await.unwrap() {
            assert_eq!(event.event.body.as_str(), "\"new\"");
        }
    }

    // Mutant: `add` that looks at the number of events only.
    #[tokio::test]
    async fn the_newest_events_in_memory_are_bounded_in_bytes() {
        let (_folder, log) = log().await;
        let stream = StreamId::new("s").unwrap();
        // Keeps the tail.
        let reader = log.reader(&stream, 0);
        let kept = || {
            let kept = reader.tail.kept.lock().unwrap();
            let bytes: usize = kept.events.values().map(|event| event.bytes()).sum();
            assert_eq!(kept.bytes, bytes);
            (kept.events.keys().copied().collect::<Vec<_>>(), bytes)
        };
        let large = "x".repeat(400 << 10);
        for _ in 0..10 {
            write(&log, &stream, &large, 1).await;
        }
        let (numbers, bytes) = kept();
        assert_eq!(numbers, [9, 10], "the newest");
        assert!(bytes <= TAIL_BYTES, "{bytes}");
        // One that is larger than all of it is kept alone: readers wait for it.
        write(&log, &stream, &"x".repeat(TAIL_BYTES + 1), 1).await;
        assert_eq!(kept().0, [11]);
    }
}
