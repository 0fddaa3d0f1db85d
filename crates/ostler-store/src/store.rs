//! The door: what the server asks of whatever remembers for it.

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
/// When a method returns, what it did is on disk, with the one exception that [`NewEvent::durable`] describes. When it
/// fails, nothing was done, except after [`Error::Broken`], where that is unknown. A future that is dropped may still
/// do its work.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Takes a stream, which need not exist, and with it the only right to add to it. The lease has a higher epoch than
    /// all before it, so they are worth nothing from now on.
    ///
    /// [`Error::Held`] while somebody else's lease lasts. An owner can take its own stream again at any time.
    async fn claim(&self, stream: &StreamId, owner: &str, lease: Duration) -> Result<Lease, Error>;

    /// Makes the lease last this long from now. [`Error::Fenced`] when it is lost; one that has merely run out is not.
    async fn renew(&self, lease: &Lease, lasting: Duration) -> Result<Lease, Error>;

    /// Gives the stream back, so that anybody can claim it. [`Error::Fenced`] when the lease is lost anyway.
    async fn release(&self, lease: &Lease) -> Result<(), Error>;

    /// Adds events and changes records: all of it, or nothing. The events get the next numbers, in their order.
    ///
    /// [`Error::Fenced`] when the lease is lost; [`Error::Conflict`] when a record is not as expected. An event whose key
    /// is known is not added: the one that is there is returned in its place. When that is so for all events, this
    /// is a repetition of an append that has happened, and the records are left alone too.
    async fn append(
        &self,
        lease: &Lease,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<Vec<Event>, Error>;

    /// Events with higher numbers than `after`, in order and without gaps but for dropped drafts. At most `limit`; fewer when they are large,
    /// but never none while there are some. What can be read is on disk.
    ///
    /// [`Error::Damaged`] names the first that is not what was written; what comes after it can still be read.
    async fn read_from(
        &self,
        stream: &StreamId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error>;

    /// The number of the last event that can be read; 0 when there is none.
    async fn head(&self, stream: &StreamId) -> Result<u64, Error>;

    /// Tells when [`Store::head`] has grown, whoever added to the stream: a store that several servers write to looks
    /// for what the others did, so that not every reader has to. It ends when the store is closed or has failed.
    fn follow(&self, stream: &StreamId) -> watch::Receiver<u64>;

    /// Changes records: all of them, or none. Returns them as they are now.
    async fn put(&self, puts: Vec<Put>) -> Result<Vec<Record>, Error>;

    /// One record.
    async fn get(&self, kind: &str, id: &str) -> Result<Option<Record>, Error>;

    /// The records of a kind that fit, ordered by id.
    async fn list(&self, kind: &str, filter: &Filter, page: &Page) -> Result<Vec<Record>, Error>;

    /// How many records of a kind fit, counted up to `most`.
    async fn count(&self, kind: &str, filter: &Filter, most: usize) -> Result<usize, Error>;

    /// How many records of a kind fit, for each value that a field of theirs has, on top; records without a string there are
    /// left out. At most `most` values, which must not be relied on to be certain ones.
    async fn count_by(
        &self,
        kind: &str,
        filter: &Filter,
        field: &str,
        most: usize,
    ) -> Result<Vec<(String, usize)>, Error>;

    /// Changes records and takes others away (kind, id and what is expected): all of it, or nothing.
    async fn replace(
        &self,
        puts: Vec<Put>,
        removed: Vec<(String, String, Expected)>,
    ) -> Result<(), Error>;

    /// Takes a record away. With [`Expected::Any`] it need not be there.
    async fn remove(&self, kind: &str, id: &str, expected: Expected) -> Result<(), Error>;

    /// Has something done at a time. What was scheduled under this id is replaced, and a claim on it is void.
    async fn schedule(&self, due: Due) -> Result<(), Error>;

    /// Takes what is due by the clock of the store and not claimed by anybody, the earliest first.
    async fn claim_due(
        &self,
        owner: &str,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<DueClaim>, Error>;

    /// What was due is done: it is due again at `next`, or gone. [`Error::Fenced`] when the claim is lost.
    async fn complete(&self, claim: &DueClaim, next: Option<Timestamp>) -> Result<(), Error>;

    /// Forgets what was scheduled, if it was, and voids a claim on it.
    async fn unschedule(&self, id: &str) -> Result<(), Error>;

    /// The drafts of a stream that no event has dropped, in order. After a crash that is what was streamed and never
    /// came whole.
    async fn drafts(&self, stream: &StreamId) -> Result<Vec<Event>, Error>;

    /// Takes a stream away with all its events, whoever holds it, and these records (kind and id), whether or not they are
    /// there: all of it, or nothing. When this returns, neither can be found in the files of the store. Leases on the
    /// stream are lost, those who follow it learn of its end, and a stream of the same name begins at 1 again.
    ///
    /// [`Error::Failed`] when it is gone, but its text may still be in the log of a database: forget it once more.
    async fn forget(&self, stream: &StreamId, records: Vec<(String, String)>) -> Result<(), Error>;

    /// Takes away the events of a stream with lower numbers than `before`. The rest keeps its numbers and can be verified.
    async fn trim(&self, stream: &StreamId, before: u64) -> Result<(), Error>;

    /// Reads a whole stream and checks that every event is what was written, and where.
    async fn verify(&self, stream: &StreamId) -> Result<(), Error>;

    /// Looks at everything: the structure of the store, and every event of every stream. Returns what is damaged.
    /// Takes as long as reading it all, and nobody waits for it meanwhile; once a night is often enough.
    async fn examine(&self) -> Result<Vec<Error>, Error>;

    /// Writes everything, as of one moment, to a file that must not exist yet.
    async fn backup(&self, to: &Path) -> Result<(), Error>;

    /// The time by the clock of the store.
    async fn now(&self) -> Result<Timestamp, Error>;

    /// Takes changes again after [`Error::Broken`], if that is possible by now. All leases and claims are lost, as after a
    /// restart. A store that has not failed stays as it is.
    async fn reopen(&self) -> Result<(), Error>;

    /// Finishes what was begun and lets go of everything. What is asked later is answered with [`Error::Closed`].
    async fn close(&self) -> Result<(), Error>;
}
