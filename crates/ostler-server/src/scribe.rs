//! Who writes to the log of a session: its worker while there is one, anybody for a moment otherwise.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ostler_store::{Error, NewEvent, Put, Store, StreamId};

use crate::fault::{self, Fallible};
use crate::log::{Log, Logged, Writer};

/// How long a worker holds a session without renewing; after a crash another server has to wait that long.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// One per server.
pub(crate) struct Scribe {
    log: Log,
    store: Arc<dyn Store>,
    /// This server, among those that share the store.
    node: String,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// A session's writer. Locked while it is being claimed, so that a worker and a passer-by do not fence each other.
#[derive(Default)]
struct Slot {
    writer: tokio::sync::Mutex<Option<Writer>>,
}

impl Scribe {
    pub(crate) fn new(log: Log, store: Arc<dyn Store>, node: String) -> Self {
        Self { log, store, node, slots: Mutex::default() }
    }

    /// Becomes the writer of a session, until [`Scribe::close`].
    pub(crate) async fn open(&self, session: &str) -> Fallible<Writer> {
        let slot = self.slot(session);
        let mut place = slot.writer.lock().await;
        let writer = self.claim(session).await?;
        *place = Some(writer.clone());
        Ok(writer)
    }

    pub(crate) async fn close(&self, session: &str) {
        let slot = self.slot(session);
        if let Some(writer) = slot.writer.lock().await.take()
            && let Err(error) = writer.release().await
        {
            // It expires by itself.
            tracing::warn!(session, %error, "a lease was not given back");
        }
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waits for it holds it too, and two slots of one session must not be.
        if slots.get(session).is_some_and(|held| Arc::strong_count(held) <= 2) {
            slots.remove(session);
        }
    }

    /// Writes to a session, whether or not it has a worker.
    pub(crate) async fn write(
        &self,
        session: &str,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<Vec<Arc<Logged>>, Error> {
        let slot = self.slot(session);
        let mut place = slot.writer.lock().await;
        if let Some(writer) = place.clone() {
            drop(place);
            match writer.append(events.clone(), puts.clone()).await {
                // The worker has lost the session, as after a commit that failed, and will notice.
                Err(Error::Fenced { .. }) => {}
                written => return written,
            }
            place = slot.writer.lock().await;
            if place.as_ref().is_some_and(|known| known.lease() == writer.lease()) {
                *place = None;
            }
        }
        let writer = self.claim(session).await?;
        let written = writer.append(events, puts).await;
        let released = writer.release().await;
        let written = written?;
        released?;
        Ok(written)
    }

    async fn claim(&self, session: &str) -> Result<Writer, Error> {
        let stream = StreamId::new(session)?;
        let lease = self.store.claim(&stream, &self.node, LEASE).await?;
        Ok(self.log.writer(lease))
    }

    fn slot(&self, session: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(session.to_owned()).or_default())
    }
}

/// The name of a session's log.
pub(crate) fn stream(session: &str) -> Fallible<StreamId> {
    StreamId::new(session).map_err(|_| fault::not_found("session", session))
}
