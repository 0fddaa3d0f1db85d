//! The storage interface of the server.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{
    Due, DueClaim, Error, Event, Expected, Filter, Lease, NewEvent, Page, Put, Record, StreamId,
    Timestamp,
};

/// Logs, records and timers that survive the process.
///
/// When a method returns, its changes are on disk, with the one exception that [`NewEvent::durable`] describes. When
/// it fails, nothing was changed, except after [`Error::Broken`], where that is unknown. A dropped future may still
/// complete its work.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Claims a stream, which need not exist, and with it the exclusive right to append. The lease has a higher epoch
    /// than all before it, which are invalid from now on.
    ///
    /// [`Error::Held`] while another owner's lease lasts. An owner can claim its own stream again at any time.
    async fn claim(&self, stream: &StreamId, owner: &str, lease: Duration) -> Result<Lease, Error>;

    /// Extends the lease to `lasting` from now. [`Error::Fenced`] if it is lost; an expired lease that no one else
    /// claimed is not lost.
    async fn renew(&self, lease: &Lease, lasting: Duration) -> Result<Lease, Error>;

    /// Releases the stream, so that any owner can claim it. [`Error::Fenced`] if the lease is lost.
    async fn release(&self, lease: &Lease) -> Result<(), Error>;

    /// Appends events and changes records: all of it, or nothing. The events get the next numbers, in order.
    ///
    /// [`Error::Fenced`] if the lease is lost; [`Error::Conflict`] if a record is not as expected. An event whose key
    /// is known is not added: the stored one is returned in its place. If that is so for all events, this is a
    /// repeated append, and the records are left alone too.
    async fn append(
        &self,
        lease: &Lease,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<Vec<Event>, Error>;

    /// Reads events after number `after`, in order and without gaps except for dropped drafts. Returns at most
    /// `limit`; fewer if they are large, but at least one if any is left. What can be read is on disk.
    ///
    /// [`Error::Damaged`] names the first damaged event; those after it can still be read.
    async fn read_from(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error>;

    /// The number of the last readable event; 0 for an empty stream.
    async fn head(&self, stream: &StreamId) -> Result<u64, Error>;

    /// Notifies when [`Store::head`] grows, whichever server appended. A store shared by several servers polls for
    /// the others' changes, so that not every reader has to. It ends when the store is closed or has failed.
    fn follow(&self, stream: &StreamId) -> watch::Receiver<u64>;

    /// Changes records: all of them, or none. Returns them as stored.
    async fn put(&self, puts: Vec<Put>) -> Result<Vec<Record>, Error>;

    /// Reads one record.
    async fn get(&self, kind: &str, id: &str) -> Result<Option<Record>, Error>;

    /// The matching records of a kind, in the order of the page.
    async fn list(&self, kind: &str, filter: &Filter, page: &Page) -> Result<Vec<Record>, Error>;

    /// How many records of a kind match, counted up to `most`.
    async fn count(&self, kind: &str, filter: &Filter, most: usize) -> Result<usize, Error>;

    /// How many records of a kind match, per value of a top-level field; records without a string there are left out.
    /// Returns at most `most` values; which ones is unspecified.
    async fn count_by(
        &self,
        kind: &str,
        filter: &Filter,
        field: &str,
        most: usize,
    ) -> Result<Vec<(String, usize)>, Error>;

    /// Changes records and removes others (kind, id and what is expected): all of it, or nothing.
    async fn replace(
        &self,
        puts: Vec<Put>,
        removed: Vec<(String, String, Expected)>,
    ) -> Result<(), Error>;

    /// Removes a record. With [`Expected::Any`] it need not exist.
    async fn remove(&self, kind: &str, id: &str, expected: Expected) -> Result<(), Error>;

    /// Schedules a timer. It replaces a timer with the same id and invalidates claims on it.
    async fn schedule(&self, due: Due) -> Result<(), Error>;

    /// Claims timers that are due by the store's clock and unclaimed, the earliest first.
    async fn claim_due(
        &self,
        owner: &str,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<DueClaim>, Error>;

    /// Completes a timer: it is due again at `next`, or removed. [`Error::Fenced`] if the claim is lost.
    async fn complete(&self, claim: &DueClaim, next: Option<Timestamp>) -> Result<(), Error>;

    /// Removes a timer if it exists, and invalidates claims on it.
    async fn unschedule(&self, id: &str) -> Result<(), Error>;

    /// The drafts of a stream that no event has dropped, in order. After a crash that is what was streamed but never
    /// completed.
    async fn drafts(&self, stream: &StreamId) -> Result<Vec<Event>, Error>;

    /// Deletes a stream with all its events, whether or not it is leased, and these records (kind and id), whether or
    /// not they exist: all of it, or nothing. When this returns, the store's files no longer contain the data. Leases
    /// on the stream are lost, its followers end, and a new stream of that name starts at 1.
    ///
    /// [`Error::Failed`] if it is deleted, but its text may still be in the write-ahead log: call this again.
    async fn forget(&self, stream: &StreamId, records: Vec<(String, String)>) -> Result<(), Error>;

    /// Deletes the events of a stream with numbers below `before`. The rest keeps its numbers and can be verified.
    async fn trim(&self, stream: &StreamId, before: u64) -> Result<(), Error>;

    /// Reads a whole stream and verifies that every event is as written, and in its place.
    async fn verify(&self, stream: &StreamId) -> Result<(), Error>;

    /// Checks the structure of the store and every event of every stream. Returns what is damaged. Takes as long as
    /// reading everything, without blocking other requests; once a night is enough.
    async fn examine(&self) -> Result<Vec<Error>, Error>;

    /// Writes everything, as of one moment, to a new file.
    async fn backup(&self, to: &Path) -> Result<(), Error>;

    /// The store's clock.
    async fn now(&self) -> Result<Timestamp, Error>;

    /// Accepts changes again after [`Error::Broken`], if possible. All leases and claims are lost, as after a
    /// restart. Does nothing if the store has not failed.
    async fn reopen(&self) -> Result<(), Error>;

    /// Completes pending requests and releases all resources. Later requests fail with [`Error::Closed`].
    async fn close(&self) -> Result<(), Error>;
}
