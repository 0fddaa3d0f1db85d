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

    /// Events with higher numbers than `after`, in order and without gaps. At most `limit`; fewer when they are large,
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

    /// Reads a whole stream and checks that every event is what was written, and where.
    async fn verify(&self, stream: &StreamId) -> Result<(), Error>;

    /// Writes everything, as of one moment, to a file that must not exist yet.
    async fn backup(&self, to: &Path) -> Result<(), Error>;

    /// The time by the clock of the store.
    async fn now(&self) -> Result<Timestamp, Error>;

    /// Finishes what was begun and lets go of everything. What is asked later is answered with [`Error::Closed`].
    async fn close(&self) -> Result<(), Error>;
}
