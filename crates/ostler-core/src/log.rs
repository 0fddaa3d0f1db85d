//! The event log for its readers: all events after a number, and then new ones as they come.
//!
//! The newest events are cached in memory, already rendered as server-sent events, so that a thousand readers of one
//! session cost one serialisation and no reads of the store. All other events are read from the store, and only events
//! that the store has written enter the cache.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use ostler_base::error::{self, ApiError, Fallible};
use ostler_store::{Event, Lease, NewEvent, Put, Store, StreamId};
use tokio::sync::{Semaphore, watch};

/// How many events of a session, and how many bytes of them, are cached; at most one event exceeds the limit.
const TAIL: usize = 1_024;
const TAIL_BYTES: usize = 1 << 20;
/// How many events are read from the store at once.
const STEP: usize = 256;
/// How many pages of old events are read from the store at the same time, for all readers.
const PAST_READS: usize = 2;

/// The log of all sessions.
#[derive(Clone)]
pub struct Log {
    store: Arc<dyn Store>,
    tails: Arc<Mutex<HashMap<StreamId, Weak<Tail>>>>,
    /// Reading old events must not block all other reads from the store.
    past_reads: Arc<Semaphore>,
}

/// An event, and its rendered form.
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

    /// Renders a server-sent event with its number.
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

/// A page of old events, as read from the store.
type PastPage = Arc<[Arc<Logged>]>;

/// The cache of a session: the newest events, and the pages of old events that readers use.
#[derive(Default)]
struct Tail {
    kept: Mutex<Newest>,
    /// Keyed by the number that they follow. A page stays while a reader has it, so that hundreds of readers who join
    /// at the same event cost one read, one rendering and one copy.
    pages: Mutex<HashMap<u64, Weak<[Arc<Logged>]>>>,
    /// Locked while a page is read: other readers of the same page wait for it.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Newest {
    events: BTreeMap<u64, Arc<Logged>>,
    bytes: usize,
}

impl Tail {
    fn add(&self, events: impl IntoIterator<Item = Arc<Logged>>) {
        let mut kept = self.kept.lock();
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

    /// Whether events follow a number, and the first of them is no longer cached.
    fn is_past(&self, seq: u64) -> bool {
        let kept = self.kept.lock();
        kept.events.first_key_value().is_some_and(|(first, _)| *first > seq + 1)
    }

    /// A page of old events, if a reader has it.
    fn page(&self, after: u64) -> Option<PastPage> {
        self.pages.lock().get(&after)?.upgrade()
    }

    fn share(&self, after: u64, page: &PastPage) {
        let mut pages = self.pages.lock();
        pages.retain(|_, page| page.strong_count() > 0);
        pages.insert(after, Arc::downgrade(page));
    }

    /// The cached events that follow a number without a gap.
    fn after(&self, seq: u64) -> Vec<Arc<Logged>> {
        let kept = self.kept.lock();
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

    /// The writer for the holder of a lease.
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

    /// Drops the cache of a deleted stream. A new stream of the same name has other events, which begin at 1 again.
    pub fn forget(&self, stream: &StreamId) {
        self.tails.lock().remove(stream);
    }

    /// A part of a session's events, after a number.
    pub async fn read(&self, stream: &StreamId, after: u64, limit: usize) -> Fallible<Vec<Event>> {
        Ok(self.store.read_from(stream, after, limit).await?)
    }

    /// The streamed deltas of messages that are not complete yet.
    pub(crate) async fn drafts(&self, stream: &StreamId) -> Fallible<Vec<Event>> {
        Ok(self.store.drafts(stream).await?)
    }

    /// The number of the last event of a session that can be read.
    pub async fn head(&self, stream: &StreamId) -> Fallible<u64> {
        Ok(self.store.head(stream).await?)
    }

    fn tail(&self, stream: &StreamId) -> Arc<Tail> {
        let mut tails = self.tails.lock();
        if let Some(tail) = tails.get(stream).and_then(Weak::upgrade) {
            return tail;
        }
        // Removes streams without readers and writers when others are added.
        if tails.len() >= 64 && tails.len().is_power_of_two() {
            tails.retain(|_, tail| tail.strong_count() > 0);
        }
        let tail = Arc::new(Tail::default());
        tails.insert(stream.clone(), Arc::downgrade(&tail));
        tail
    }
}

/// Appends to the log of one session.
#[derive(Clone)]
pub struct Writer {
    store: Arc<dyn Store>,
    lease: Arc<Mutex<Lease>>,
    tail: Arc<Tail>,
}

impl Writer {
    /// Appends events and changes documents, all or nothing.
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
        self.lease.lock().clone()
    }

    pub(crate) async fn renew(&self, by: std::time::Duration) -> Result<(), ostler_store::Error> {
        let renewed = self.store.renew(&self.lease(), by).await?;
        *self.lease.lock() = renewed;
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
    /// Whether it has read all events at least once.
    was_live: bool,
    /// The page of old events that it reads, which it shares with other readers.
    page: Option<PastPage>,
    past_reads: Arc<Semaphore>,
}

impl Reader {
    /// The number of the last event that it read, if it had read all events and is now so far behind that the next ones
    /// are no longer cached.
    pub fn fell_behind(&self) -> Option<u64> {
        (self.was_live && self.tail.is_past(self.after)).then_some(self.after)
    }

    /// The events since the last call; waits until there are some. Dropping the future loses nothing.
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

    /// The events since the last call, if there are any.
    pub(crate) async fn ready(&mut self) -> Fallible<Vec<Arc<Logged>>> {
        let head = *self.head.borrow();
        // Events that are not on disk yet may get lost, and their numbers be used again.
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

    /// The next page of old events.
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
        // Another reader may have read it while this one waited.
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

    /// Appends this many events, and drops the cache.
    async fn write(log: &Log, stream: &StreamId, text: &str, count: usize) {
        let lease = log.store.claim(stream, "node", Duration::from_secs(60)).await.unwrap();
        let writer = log.writer(lease);
        let events = (0..count).map(|_| NewEvent::new("said", json!(text))).collect();
        writer.append(events, Vec::new()).await.unwrap();
        writer.release().await.unwrap();
    }

    // Mutant: `share` that does nothing.
    #[tokio::test]
    async fn readers_who_join_at_the_same_event_share_the_page() {
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
            assert!(Arc::ptr_eq(&page[0], &first), "the page is shared");
        }
        // The next page, and the events after it, are still correct.
        let next = readers[0].next().await.unwrap();
        assert_eq!(next[0].event.seq, STEP as u64 + 1);
        write(&log, &stream, "after", 1).await;
        assert_eq!(readers[0].next().await.unwrap()[0].event.seq, 2 * STEP as u64 + 1);
        drop((pages, first, next, readers));
        let mut reader = log.reader(&stream, 0);
        reader.next().await.unwrap();
        let n_pages = reader.tail.pages.lock().len();
        assert_eq!(n_pages, 1, "unused pages are dropped");
    }

    // Mutant: `forget` that does nothing: whoever still reads the old stream keeps its events in memory.
    #[tokio::test]
    async fn a_new_stream_of_the_same_name_has_no_events_of_the_deleted_one() {
        let (_folder, log) = log().await;
        let stream = StreamId::new("s").unwrap();
        write(&log, &stream, "secret", 3).await;
        let mut old = log.reader(&stream, 0);
        old.next().await.unwrap();
        log.store.forget(&stream, Vec::new()).await.unwrap();
        log.forget(&stream);
        // Enough to push the first ones out of the cache.
        write(&log, &stream, "new", TAIL + 1).await;
        for event in log.reader(&stream, 0).next().await.unwrap() {
            assert_eq!(event.event.body.as_str(), "\"new\"");
        }
    }

    // Mutant: `add` that looks at the number of events only.
    #[tokio::test]
    async fn the_cache_of_newest_events_is_limited_in_bytes() {
        let (_folder, log) = log().await;
        let stream = StreamId::new("s").unwrap();
        // Keeps the cache alive.
        let reader = log.reader(&stream, 0);
        let kept = || {
            let kept = reader.tail.kept.lock();
            let bytes: usize = kept.events.values().map(|event| event.bytes()).sum();
            assert_eq!(kept.bytes, bytes);
            (kept.events.keys().copied().collect::<Vec<_>>(), bytes)
        };
        let large = "x".repeat(400 << 10);
        for _ in 0..10 {
            write(&log, &stream, &large, 1).await;
        }
        let (numbers, bytes) = kept();
        assert_eq!(numbers, [9, 10], "only the newest are cached");
        assert!(bytes <= TAIL_BYTES, "{bytes}");
        // An event larger than the whole cache stays alone: readers wait for it.
        write(&log, &stream, &"x".repeat(TAIL_BYTES + 1), 1).await;
        assert_eq!(kept().0, [11]);
    }
}
