//! A store in a local folder: SQLite with a write-ahead log, one writer thread, a pool of read connections.
//!
//! The folder belongs to one process at a time (`folder`). All changes go through one thread, which commits waiting
//! requests together (`writer`). A commit is on disk before any caller is answered, and readers see only committed
//! data. `lease`, `log`, `record` and `due` hold the SQL statements, `check` validates input, and `chain` detects
//! data that the disk changed.

mod backup;
mod chain;
mod check;
mod clock;
mod draft;
mod due;
mod examine;
mod fault;
mod folder;
mod followers;
mod forget;
mod lease;
mod log;
mod readers;
mod record;
mod schema;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use self::clock::Time;
use self::fault::{FailStatements, Fault};
use self::folder::Folder;
use self::followers::Followers;
use self::readers::Readers;
use self::writer::Writer;
use crate::{
    Due, DueClaim, Error, Event, Expected, Filter, Lease, NewEvent, Page, Put, Record, Store,
    StreamId, Timestamp,
};

pub use self::backup::{back_up, check, restore};
pub use self::clock::{Clock, SystemClock};

/// A [`Store`] in a local folder. Dropping it writes pending requests and unlocks the folder.
pub struct Sqlite {
    // Dropped in this order: nothing uses the folder when its lock is released.
    writer: Writer,
    readers: Readers,
    time: Time,
    records_read: AtomicU64,
    _folder: Folder,
}

impl Sqlite {
    /// Opens or creates the store in a folder. Leases of an earlier process are free.
    ///
    /// [`Error::Open`] if another process uses the folder, if it is on a network file system, or if a newer program
    /// wrote it.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(folder, Arc::new(SystemClock::default())).await
    }

    /// Like [`Self::open`], with a clock of the caller.
    pub async fn open_with(folder: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let path = folder.as_ref().to_owned();
        let opened = tokio::task::spawn_blocking(move || Self::open_blocking(&path, clock));
        opened.await.unwrap_or_else(|error| {
            let place = folder.as_ref().display().to_string();
            Err(Error::Open { place, why: error.to_string() })
        })
    }

    fn open_blocking(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let folder = Folder::open(path)?;
        let connection = schema::prepare(&folder, schema::STEPS)?;
        let place = folder.database().display().to_string();
        connection
            .execute_batch(lease::FREE_ALL)
            .map_err(|error| Error::Open { place, why: error.to_string() })?;
        let time = Time::new(clock);
        let (fail, followers) = (FailStatements::default(), Followers::default());
        let readers = Readers::new(&folder.database(), fail.clone());
        let writer = Writer::start(connection, time.clone(), folder.database(), followers, fail)?;
        let records_read = AtomicU64::new(0);
        Ok(Self { writer, readers, time, records_read, _folder: folder })
    }

    /// Removes deleted data from the files.
    async fn reclaim(&self) -> Result<(), Error> {
        while self.writer.write(0, forget::shrink).await? {}
        self.readers.ask_aside(forget::empty_log).await
    }

    /// How many records were read since the store was opened, for tests that bound a request's cost.
    #[doc(hidden)]
    pub fn records_read(&self) -> u64 {
        self.records_read.load(Ordering::Relaxed)
    }

    /// For tests: the next commit fails with this SQLite error code.
    #[doc(hidden)]
    pub fn fail_next_commit(&self, code: i32) {
        self.writer.shared().fail_commit.store(code, Ordering::Relaxed);
    }

    /// For tests: all commits fail with this SQLite error code until it is set to 0.
    #[doc(hidden)]
    pub fn fail_commits(&self, code: i32) {
        self.writer.shared().fail_commits.store(code, Ordering::Relaxed);
    }

    /// For tests: all statements fail with this SQLite error code until it is set to 0, those that read included.
    #[doc(hidden)]
    pub fn fail_statements(&self, code: i32) {
        self.writer.shared().fail_statements.set(code);
    }

    /// For tests: lets the database grow by at most `pages`, like a disk that is nearly full; `None` removes the
    /// limit.
    #[doc(hidden)]
    pub async fn limit_growth(&self, pages: Option<u32>) -> Result<(), Error> {
        let limit = move |cx: &mut writer::Cx<'_>| {
            let now: u32 =
                cx.connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let most = pages.map_or(i64::from(u32::MAX - 1), |pages| i64::from(now + pages));
            cx.connection.pragma_update_and_check(None, "max_page_count", most, |_| Ok(()))?;
            Ok(())
        };
        self.writer.write(0, limit).await
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn claim(&self, stream: &StreamId, owner: &str, lease: Duration) -> Result<Lease, Error> {
        check::id("an owner", owner)?;
        let (stream, owner) = (stream.clone(), owner.to_owned());
        self.writer.write(0, move |cx| lease::claim(cx, &stream, &owner, lease)).await
    }

    async fn renew(&self, lease: &Lease, lasting: Duration) -> Result<Lease, Error> {
        let lease = lease.clone();
        self.writer.write(0, move |cx| lease::renew(cx, &lease, lasting)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let lease = lease.clone();
        self.writer.write(0, move |cx| lease::release(cx, &lease)).await
    }

    async fn append(
        &self,
        lease: &Lease,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<Vec<Event>, Error> {
        let bytes = check::append(&events, &puts)?;
        let lease = lease.clone();
        self.writer.write(bytes, move |cx| log::append(cx, &lease, &events, &puts)).await
    }

    async fn read_from(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        let limit = check::limit(limit);
        if let Some(latest) = self.writer.shared().followers.latest(stream, after, limit) {
            return Ok(latest);
        }
        let stream = stream.clone();
        self.readers.ask_aside(move |reader| log::read_from(reader, &stream, after, limit)).await
    }

    async fn head(&self, stream: &StreamId) -> Result<u64, Error> {
        let stream = stream.clone();
        self.readers.ask(move |reader| Ok(log::head(reader, &stream)?)).await
    }

    fn follow(&self, stream: &StreamId) -> watch::Receiver<u64> {
        let head = || self.readers.ask_now(|reader| Ok(log::head(reader, stream)?));
        // Without an answer it starts at 0, which is harmless: the number is only a hint.
        self.writer.shared().followers.follow(stream, || head().unwrap_or(0))
    }

    async fn put(&self, puts: Vec<Put>) -> Result<Vec<Record>, Error> {
        let bytes = check::puts(&puts)?;
        self.writer.write(bytes, move |cx| record::put(cx, &puts)).await
    }

    async fn get(&self, kind: &str, id: &str) -> Result<Option<Record>, Error> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        let found = self.readers.ask(move |reader| record::get(reader, &kind, &id)).await?;
        self.records_read.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        Ok(found)
    }

    async fn count(&self, kind: &str, filter: &Filter, most: usize) -> Result<usize, Error> {
        let page = check::list(kind, filter, &Page::default())?;
        let (kind, filter) = (kind.to_owned(), filter.clone());
        let count = move |reader: &_| record::count(reader, &kind, &filter, &page, most);
        self.readers.ask_aside(count).await
    }

    async fn count_by(
        &self,
        kind: &str,
        filter: &Filter,
        field: &str,
        most: usize,
    ) -> Result<Vec<(String, usize)>, Error> {
        let page = Page { by: Some(field.to_owned()), limit: most, ..Page::default() };
        check::list(kind, filter, &page)?;
        let (kind, filter, field) = (kind.to_owned(), filter.clone(), field.to_owned());
        let count = move |reader: &_| record::count_by(reader, &kind, &filter, &field, most);
        self.readers.ask_aside(count).await
    }

    async fn replace(
        &self,
        puts: Vec<Put>,
        removed: Vec<(String, String, Expected)>,
    ) -> Result<(), Error> {
        let bytes = check::puts(&puts)?;
        self.writer
            .write(bytes, move |cx| {
                for (kind, id, expected) in &removed {
                    record::remove(cx, kind, id, *expected)?;
                }
                record::put(cx, &puts).map(drop)
            })
            .await
    }

    async fn list(&self, kind: &str, filter: &Filter, page: &Page) -> Result<Vec<Record>, Error> {
        let page = check::list(kind, filter, page)?;
        let (kind, filter) = (kind.to_owned(), filter.clone());
        let list = move |reader: &_| record::list(reader, &kind, &filter, &page);
        let found = self.readers.ask_aside(list).await?;
        self.records_read.fetch_add(found.len() as u64, Ordering::Relaxed);
        Ok(found)
    }

    async fn remove(&self, kind: &str, id: &str, expected: Expected) -> Result<(), Error> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        self.writer.write(0, move |cx| record::remove(cx, &kind, &id, expected)).await
    }

    async fn schedule(&self, due: Due) -> Result<(), Error> {
        let bytes = check::due(&due)?;
        self.writer.write(bytes, move |cx| due::schedule(cx, &due)).await
    }

    async fn claim_due(
        &self,
        owner: &str,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<DueClaim>, Error> {
        check::id("an owner", owner)?;
        let (owner, limit) = (owner.to_owned(), check::limit(limit));
        self.writer.write(0, move |cx| due::claim(cx, &owner, lease, limit)).await
    }

    async fn complete(&self, claim: &DueClaim, next: Option<Timestamp>) -> Result<(), Error> {
        let claim = claim.clone();
        self.writer.write(0, move |cx| due::complete(cx, &claim, next)).await
    }

    async fn unschedule(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.writer.write(0, move |cx| due::unschedule(cx, &id)).await
    }

    async fn drafts(&self, stream: &StreamId) -> Result<Vec<Event>, Error> {
        let stream = stream.clone();
        self.readers.ask_aside(move |reader| draft::all(reader, &stream)).await
    }

    async fn forget(&self, stream: &StreamId, records: Vec<(String, String)>) -> Result<(), Error> {
        let (name, removed) = (stream.clone(), records);
        self.writer.write(0, move |cx| forget::forget(cx, &name, &removed)).await?;
        self.writer.shared().followers.forget(stream);
        self.reclaim().await
    }

    async fn trim(&self, stream: &StreamId, before: u64) -> Result<(), Error> {
        let stream = stream.clone();
        self.writer.write(0, move |cx| forget::trim(cx, &stream, before)).await?;
        self.reclaim().await
    }

    async fn verify(&self, stream: &StreamId) -> Result<(), Error> {
        let stream = stream.clone();
        self.readers.ask_aside(move |reader| log::verify(reader, &stream)).await
    }

    async fn examine(&self) -> Result<Vec<Error>, Error> {
        self.readers.ask_aside(examine::all).await
    }

    async fn backup(&self, to: &Path) -> Result<(), Error> {
        let to = to.to_owned();
        self.readers
            .ask_aside(move |reader| schema::back_up(reader, &to).map_err(Fault::from))
            .await
    }

    async fn now(&self) -> Result<Timestamp, Error> {
        Ok(self.time.wall())
    }

    async fn reopen(&self) -> Result<(), Error> {
        self.writer.reopen().await
    }

    async fn close(&self) -> Result<(), Error> {
        self.readers.close().await;
        if let Some(thread) = self.writer.stop() {
            // A panic inside was caught, and every waiting caller was answered.
            _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        Ok(())
    }
}

/// SQLite's integers are signed; no number here gets that large.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
