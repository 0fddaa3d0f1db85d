//! Who writes to the log of a session: its worker, or any task for a moment if there is no worker.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ostler_base::error::{self, Fallible};
use ostler_store::{Error, NewEvent, Put, Store, StreamId};
use tokio::time::Instant;

use crate::log::{Log, Logged, Writer};

/// The log writers of a server.
pub struct LogWriters {
    log: Log,
    store: Arc<dyn Store>,
    /// The id of this server among those that share the store.
    node: String,
    /// How long the lease of a worker lasts without renewal.
    pub lease: Duration,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// A session's writer. Locked while it is being claimed, so that a worker and another task do not fence each other.
#[derive(Default)]
struct Slot {
    writer: tokio::sync::Mutex<Option<Held>>,
}

/// A lease on a session.
#[derive(Clone)]
struct Held {
    writer: Writer,
    /// When it was requested.
    since: Instant,
    /// Left by the task that queued a run, for the worker that is about to start.
    is_spare: bool,
}

impl LogWriters {
    pub fn new(log: Log, store: Arc<dyn Store>, node: String, lease: Duration) -> Self {
        Self { log, store, node, lease, slots: Mutex::default() }
    }

    /// Becomes the writer of a session, until [`LogWriters::close`]. Also returns since when the lease counts.
    pub async fn open(&self, session: &str) -> Fallible<(Writer, Instant)> {
        let slot = self.slot(session);
        let mut place = slot.writer.lock().await;
        let spare =
            place.take().filter(|held| held.is_spare && held.since.elapsed() < self.lease / 3);
        let claimed = match spare {
            Some(spare) => Ok(spare),
            None => self.claim(session).await,
        };
        if let Ok(held) = &claimed {
            *place = Some(Held { is_spare: false, ..held.clone() });
        }
        drop(place);
        self.free(session, slot);
        let held = claimed?;
        Ok((held.writer, held.since))
    }

    /// Reopens the store after a failure.
    pub(crate) async fn reopen(&self) -> Result<(), Error> {
        self.store.reopen().await
    }

    /// Releases a session that [`LogWriters::open`] claimed. The lease of a worker that has opened it since stays.
    pub async fn close(&self, session: &str, writer: &Writer) {
        let slot = self.slot(session);
        let epoch = writer.lease().epoch;
        let mut place = slot.writer.lock().await;
        if let Some(held) = place.take_if(|held| held.writer.lease().epoch == epoch)
            && let Err(error) = held.writer.release().await
        {
            // The lease expires by itself.
            tracing::warn!(session, %error, "a lease could not be released");
        }
        drop(place);
        self.free(session, slot);
    }

    /// Returns a slot. One without a writer is removed as soon as no task uses it; otherwise there would be one for
    /// every session ever written to.
    fn free(&self, session: &str, slot: Arc<Slot>) {
        let mut slots = self.slots.lock();
        let is_empty = slot.writer.try_lock().is_ok_and(|writer| writer.is_none());
        // A waiting task holds it too, and a session must never have two slots.
        if is_empty && Arc::strong_count(&slot) <= 2 {
            slots.remove(session);
        }
    }

    /// Writes to a session, with or without a worker.
    pub async fn write(
        &self,
        session: &str,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<Vec<Arc<Logged>>, Error> {
        self.write_and(session, events, puts, false).await
    }

    /// Writes to a session that gets a worker immediately afterwards, and leaves the lease to it: claiming once instead
    /// of twice, and not releasing, saves two of five commits of a prompt. If the server stops in between, the log says
    /// that a run is queued, and the lease expires by itself.
    pub(crate) async fn write_before_work(
        &self,
        session: &str,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<Vec<Arc<Logged>>, Error> {
        self.write_and(session, events, puts, true).await
    }

    async fn write_and(
        &self,
        session: &str,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
        keeps: bool,
    ) -> Result<Vec<Arc<Logged>>, Error> {
        let slot = self.slot(session);
        let written = self.write_in(&slot, session, events, puts, keeps).await;
        self.free(session, slot);
        written
    }

    async fn write_in(
        &self,
        slot: &Slot,
        session: &str,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
        keeps: bool,
    ) -> Result<Vec<Arc<Logged>>, Error> {
        let mut place = slot.writer.lock().await;
        if let Some(Held { writer, .. }) = place.clone() {
            drop(place);
            match writer.append(events.clone(), puts.clone()).await {
                // The worker has lost the session, as after a failed commit, and will notice.
                Err(Error::Fenced { .. }) => {}
                written => return written,
            }
            place = slot.writer.lock().await;
            if place.as_ref().is_some_and(|known| known.writer.lease() == writer.lease()) {
                *place = None;
            }
        }
        let held = self.claim(session).await?;
        let written = held.writer.append(events, puts).await;
        if keeps && written.is_ok() {
            *place = Some(Held { is_spare: true, ..held });
            return written;
        }
        let released = held.writer.release().await;
        let written = written?;
        released?;
        Ok(written)
    }

    async fn claim(&self, session: &str) -> Result<Held, Error> {
        let stream = StreamId::new(session)?;
        let since = Instant::now();
        let lease = self.store.claim(&stream, &self.node, self.lease).await?;
        Ok(Held { writer: self.log.writer(lease), since, is_spare: false })
    }

    fn slot(&self, session: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        Arc::clone(slots.entry(session.to_owned()).or_default())
    }
}

/// The name of a session's log.
pub fn stream(session: &str) -> Fallible<StreamId> {
    StreamId::new(session).map_err(|_| error::not_found("session", session))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Mutant: `close` that releases whatever lease is there: a prompt that came while an idle worker was ending its engine
    // was interrupted.
    #[tokio::test]
    async fn a_worker_that_ends_leaves_the_lease_of_the_next_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> =
            Arc::new(ostler_store::Sqlite::open(folder.path()).await.unwrap());
        let log = Log::new(Arc::clone(&store));
        let log_writers = LogWriters::new(log, store, "node".to_owned(), Duration::from_secs(60));
        let (ending, _) = log_writers.open("s").await.unwrap();
        let (next, _) = log_writers.open("s").await.unwrap();
        log_writers.close("s", &ending).await;
        let said = || vec![NewEvent::new("said", json!("hello"))];
        next.append(said(), Vec::new()).await.expect("the worker still has the lease");
        log_writers.write("s", said(), Vec::new()).await.unwrap();
        next.append(said(), Vec::new()).await.expect("the worker still has the lease");
        log_writers.close("s", &next).await;
        assert!(matches!(next.append(said(), Vec::new()).await, Err(Error::Fenced { .. })));
        assert!(log_writers.slots.lock().is_empty(), "no slot stays");
    }
}
