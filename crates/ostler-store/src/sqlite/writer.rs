//! The one writer thread. Waiting requests are committed together.
//!
//! A commit costs one synced write to the disk, whatever it contains, so requests that arrive during one share the
//! next. Each request has its own savepoint: a refused one does not affect the others. No request is answered before
//! the commit, except an append of only fleeting events. If that commit fails, the lease is lost, so that its owner
//! cannot continue as if nothing had happened.
//!
//! After a failed write or sync, every request is refused until [`Writer::reopen`] has found a working database.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ffi};
use tokio::sync::{Semaphore, oneshot};

use super::clock::Time;
use super::fault::{FailStatements, Fault, judge};
use super::followers::Followers;
use super::{lease, schema};
use crate::{Error, Event, StreamId};

/// The maximum number of requests in one commit, and how long it collects them after the first.
const MOST_REQUESTS: usize = 128;
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// How long a commit waits for the next request while it has fewer than the last commit.
const MOMENT: Duration = Duration::from_micros(500);

/// How much may wait to be written, in units of 1 KiB; further requests wait for room.
const ROOM: u32 = 64 << 10;
const UNIT: usize = 1 << 10;

/// The size limit of one request, in bytes.
pub(super) const LARGEST_REQUEST: usize = ROOM as usize * UNIT;

pub(super) struct Writer {
    queue: Sender<Message>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

/// What the thread and its callers share.
pub(super) struct Shared {
    pub(super) followers: Followers,
    /// Why the store no longer writes.
    failed: Mutex<Option<Error>>,
    /// For tests: the SQLite error with which the next commit fails; 0 for no failure.
    pub(super) fail_commit: AtomicI32,
    /// For tests: the SQLite error with which all commits fail until it is 0 again.
    pub(super) fail_commits: AtomicI32,
    /// For tests: the SQLite error with which every statement fails, also of readers, until it is 0 again.
    pub(super) fail_statements: FailStatements,
}

enum Message {
    Job(Box<dyn Job>),
    Reopen(oneshot::Sender<Result<(), Error>>),
    Stop,
}

/// The context of a request.
pub(super) struct Cx<'a> {
    pub(super) connection: &'a Connection,
    pub(super) time: &'a Time,
    /// Leases whose fleeting events were lost: stream and epoch.
    lost: &'a HashMap<StreamId, u64>,
    /// Events that the request added, for followers.
    pub(super) added: Vec<Event>,
    /// The lease of a request that is answered before the commit.
    pub(super) fleeting: Option<(StreamId, u64)>,
}

impl Cx<'_> {
    pub(super) fn is_lost(&self, stream: &StreamId, epoch: u64) -> bool {
        self.lost.get(stream).is_some_and(|lost| epoch <= *lost)
    }
}

impl Shared {
    /// Stops all writing.
    fn fail(&self, error: Error) {
        // The first reason is the one that matters.
        self.failed.lock().get_or_insert(error);
        self.followers.end();
    }

    /// Why the store no longer writes, if so.
    fn failure(&self) -> Option<Error> {
        self.failed.lock().clone()
    }
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        time: Time,
        database: PathBuf,
        followers: Followers,
        fail_statements: FailStatements,
    ) -> Result<Self, Error> {
        let (queue, requests) = mpsc::channel();
        let shared = Arc::new(Shared {
            followers,
            failed: Mutex::default(),
            fail_commit: AtomicI32::new(0),
            fail_commits: AtomicI32::new(0),
            fail_statements,
        });
        let place = database.display().to_string();
        let thread = Thread {
            connection,
            time,
            database,
            place: place.clone(),
            requests,
            shared: shared.clone(),
            lost: HashMap::new(),
            last: 0,
        };
        let thread = thread::Builder::new()
            .name("store writer".to_owned())
            .spawn(move || {
                let shared = thread.shared.clone();
                if catch_unwind(AssertUnwindSafe(|| thread.run())).is_err() {
                    shared.fail(Error::Broken("the thread that writes has panicked".to_owned()));
                }
            })
            .map_err(|error| Error::Open { place, why: format!("starting a thread: {error}") })?;
        let room = Arc::new(Semaphore::new(ROOM as usize));
        Ok(Self { queue, room, thread: Mutex::new(Some(thread)), shared })
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Performs a request of `bytes` bytes and waits for its commit.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut Cx<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let units = u32::try_from(bytes / UNIT + 1).unwrap_or(ROOM).min(ROOM);
        let room = self.room.clone().acquire_many_owned(units).await;
        let room = room.expect("the semaphore is never closed");
        let (reply, answer) = oneshot::channel();
        let job = Request { work: Some(work), outcome: None, reply: Some(reply), _room: room };
        if self.queue.send(Message::Job(Box::new(job))).is_err() {
            return Err(self.ended());
        }
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Opens the database again if writing has failed, so that its contents are known.
    pub(super) async fn reopen(&self) -> Result<(), Error> {
        match self.shared.failure() {
            None => return Ok(()),
            Some(Error::Broken(_)) => {}
            // A damaged database stays unusable.
            Some(error) => return Err(error),
        }
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Message::Reopen(reply)).is_err() {
            return Err(self.ended());
        }
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Makes the thread write pending requests, close its connection and end. Join the handle to wait for it.
    pub(super) fn stop(&self) -> Option<JoinHandle<()>> {
        _ = self.queue.send(Message::Stop);
        self.thread.lock().take()
    }

    /// Why there is no answer.
    fn ended(&self) -> Error {
        self.shared.failure().unwrap_or(Error::Closed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(thread) = self.stop() {
            // A panic inside was caught, and every waiting caller was answered.
            _ = thread.join();
        }
    }
}

/// One request on its way through the thread.
trait Job: Send {
    /// Performs the request. An error fails the whole commit; a refusal of this request alone is stored for its answer.
    fn perform(&mut self, cx: &mut Cx<'_>) -> rusqlite::Result<ControlFlow<()>>;

    /// Answers now, before the commit.
    fn answer(&mut self);

    /// Answers, if not done yet, with the result of the commit.
    fn settle(self: Box<Self>, fate: Result<(), Error>);
}

struct Request<T, F> {
    work: Option<F>,
    outcome: Option<Result<T, Error>>,
    reply: Option<oneshot::Sender<Result<T, Error>>>,
    /// Released when this is dropped.
    _room: tokio::sync::OwnedSemaphorePermit,
}

impl<T, F> Job for Request<T, F>
where
    T: Send,
    F: FnOnce(&mut Cx<'_>) -> Result<T, Fault> + Send,
{
    fn perform(&mut self, cx: &mut Cx<'_>) -> rusqlite::Result<ControlFlow<()>> {
        let work = self.work.take().expect("work is done once");
        match work(cx) {
            Ok(done) => {
                self.outcome = Some(Ok(done));
                Ok(ControlFlow::Continue(()))
            }
            Err(Fault::Refused(error)) => {
                self.outcome = Some(Err(error));
                Ok(ControlFlow::Break(()))
            }
            Err(Fault::Sqlite(error)) => Err(error),
        }
    }

    fn answer(&mut self) {
        if let (Some(reply), Some(outcome)) = (self.reply.take(), self.outcome.take()) {
            // The receiver is gone if the future was dropped.
            _ = reply.send(outcome);
        }
    }

    fn settle(mut self: Box<Self>, fate: Result<(), Error>) {
        if let Err(error) = fate {
            self.outcome = Some(Err(error));
        }
        self.answer();
    }
}

struct Thread {
    connection: Connection,
    time: Time,
    database: PathBuf,
    place: String,
    requests: Receiver<Message>,
    shared: Arc<Shared>,
    lost: HashMap<StreamId, u64>,
    /// How many requests the last commit had.
    last: usize,
}

/// What was done since the last commit.
#[derive(Default)]
struct Batch {
    jobs: Vec<Box<dyn Job>>,
    added: Vec<Event>,
    fleeting: Vec<(StreamId, u64)>,
    /// Answered after the database was opened again, if this batch fails.
    reopen: Option<oneshot::Sender<Result<(), Error>>>,
    /// This batch is the last one.
    stop: bool,
}

impl Thread {
    fn run(mut self) {
        loop {
            let first = match self.requests.recv() {
                Ok(Message::Job(job)) => job,
                Ok(Message::Reopen(reply)) => {
                    // The caller may be gone.
                    _ = reply.send(self.reopen());
                    continue;
                }
                Ok(Message::Stop) | Err(_) => break,
            };
            if let Some(error) = self.shared.failure() {
                first.settle(Err(error));
                continue;
            }
            let mut batch = Batch::default();
            let done = self.fill(first, &mut batch).and_then(|()| self.commit());
            let failed = done.err().map(|error| judge(&error, &self.place));
            match &failed {
                None => self.shared.followers.notify(std::mem::take(&mut batch.added)),
                Some((error, fatal)) => {
                    self.undo(&batch);
                    if *fatal {
                        // Before any answer, so that the next request sees it.
                        self.shared.fail(error.clone());
                    }
                }
            }
            self.last = batch.jobs.len();
            for job in batch.jobs {
                job.settle(failed.as_ref().map_or(Ok(()), |(error, _)| Err(error.clone())));
            }
            if let Some(reply) = batch.reopen {
                _ = reply.send(self.reopen());
            }
            if batch.stop {
                break;
            }
        }
        self.shared.followers.end();
    }

    /// Like a restart of the process: all earlier leases are lost, and the database contents are on disk before
    /// anything is added.
    fn reopen(&mut self) -> Result<(), Error> {
        if self.shared.failure().is_none() {
            return Ok(());
        }
        let opened = self.may_commit().and_then(|()| {
            let connection = schema::connect(&self.database)?;
            // Pages whose sync failed may be in memory only: this writes them again. Concurrent readers do not
            // prevent it.
            connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()))?;
            connection.execute_batch(lease::FREE_ALL)?;
            Ok(connection)
        });
        self.connection = opened.map_err(|error| judge(&error, &self.place).0)?;
        self.shared.followers.begin();
        *self.shared.failed.lock() = None;
        Ok(())
    }

    fn may_commit(&self) -> rusqlite::Result<()> {
        self.shared.fail_statements.check()?;
        let once = self.shared.fail_commit.swap(0, Ordering::Relaxed);
        match once.max(self.shared.fail_commits.load(Ordering::Relaxed)) {
            0 => Ok(()),
            code => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
        }
    }

    /// Performs this request and those that wait after it.
    fn fill(&mut self, first: Box<dyn Job>, batch: &mut Batch) -> rusqlite::Result<()> {
        let begun = Instant::now();
        self.perform(first, batch)?;
        while batch.jobs.len() < MOST_REQUESTS && !batch.stop {
            let rest = LONGEST_WAIT.saturating_sub(begun.elapsed());
            if rest.is_zero() {
                break;
            }
            // No caller waits for a commit of fleeting events only, so there is time to collect more.
            let no_caller_waits = batch.fleeting.len() == batch.jobs.len();
            // Callers that were answered together soon send the next requests together: a short wait saves a commit.
            let others_come = batch.jobs.len() < self.last;
            let wait = match (no_caller_waits, others_come) {
                (true, _) => rest,
                (false, true) => rest.min(MOMENT),
                (false, false) => Duration::ZERO,
            };
            match self.requests.recv_timeout(wait) {
                Ok(Message::Job(job)) => self.perform(job, batch)?,
                Ok(Message::Reopen(reply)) => batch.reopen = Some(reply),
                Ok(Message::Stop) => batch.stop = true,
                // If all senders are gone, the next `recv` ends the thread.
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn perform(&self, job: Box<dyn Job>, batch: &mut Batch) -> rusqlite::Result<()> {
        // Added to the batch in any case, or it would not be answered.
        batch.jobs.push(job);
        if batch.jobs.len() == 1 {
            self.execute("BEGIN IMMEDIATE")?;
        }
        self.execute("SAVEPOINT request")?;
        self.shared.fail_statements.check()?;
        let job = batch.jobs.last_mut().expect("it was pushed above");
        let mut cx = Cx {
            connection: &self.connection,
            time: &self.time,
            lost: &self.lost,
            added: Vec::new(),
            fleeting: None,
        };
        if job.perform(&mut cx)?.is_break() {
            self.execute("ROLLBACK TO request")?;
            return self.execute("RELEASE request");
        }
        let Cx { added, fleeting, .. } = cx;
        self.execute("RELEASE request")?;
        batch.added.extend(added);
        if let Some(lease) = fleeting {
            job.answer();
            batch.fleeting.push(lease);
        }
        Ok(())
    }

    fn commit(&self) -> rusqlite::Result<()> {
        self.may_commit()?;
        self.execute("COMMIT")
    }

    fn undo(&mut self, batch: &Batch) {
        // SQLite may have rolled back already. If it cannot, the next `BEGIN` fails.
        if !self.connection.is_autocommit() {
            _ = self.execute("ROLLBACK");
        }
        for (stream, epoch) in &batch.fleeting {
            let lost = self.lost.entry(stream.clone()).or_default();
            *lost = (*lost).max(*epoch);
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}
