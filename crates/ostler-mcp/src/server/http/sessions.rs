//! The sessions of clients before MCP 2026-07-28.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::{Connection, Server};

/// Sessions by their ids.
pub(super) struct Sessions {
    most: usize,
    table: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    session: Session,
    last_used: Instant,
}

/// A session in use. It is not replaced while a clone exists outside of the table.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) connection: Connection,
    stream: Arc<AtomicBool>,
}

/// The one stream of a session that belongs to no request. Dropping it lets the client open another one.
pub(super) struct OpenStream(Arc<AtomicBool>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Session {
    /// Opens the session's own stream, unless it is open.
    pub(super) fn open_stream(&self) -> Option<OpenStream> {
        let was_open = self.stream.swap(true, Ordering::AcqRel);
        (!was_open).then(|| OpenStream(Arc::clone(&self.stream)))
    }

    fn is_used(&self) -> bool {
        // One clone is in the table.
        Arc::strong_count(&self.stream) > 1
    }
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self { most, table: Mutex::default() }
    }

    /// Begins a session; `None` if there are too many, and all are in use.
    pub(super) fn begin(&self, server: &Server) -> Option<(String, Session)> {
        let mut table = self.table.lock();
        if table.len() >= self.most {
            let unused = table.iter().filter(|(_, entry)| !entry.session.is_used());
            let oldest =
                unused.min_by_key(|(_, entry)| entry.last_used).map(|(id, _)| id.clone())?;
            table.remove(&oldest);
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let session = Session { connection: server.connect(), stream: Arc::default() };
        table.insert(id.clone(), Entry { session: session.clone(), last_used: Instant::now() });
        Some((id, session))
    }

    pub(super) fn find(&self, id: &str) -> Option<Session> {
        let mut table = self.table.lock();
        let entry = table.get_mut(id)?;
        entry.last_used = Instant::now();
        Some(entry.session.clone())
    }

    /// Ends a session and everything that runs in it. Returns whether it existed.
    pub(super) fn end(&self, id: &str) -> bool {
        let removed = self.table.lock().remove(id);
        removed.inspect(|entry| entry.session.connection.cancel_all()).is_some()
    }
}
