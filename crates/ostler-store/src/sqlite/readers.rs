//! A pool of read connections.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fault::{FailStatements, Fault, judge};
use super::schema::connect;
use crate::Error;

/// The maximum number of connections; more than the number of processors gain little.
const MOST: usize = 4;

#[derive(Clone)]
pub(super) struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// Permits for slow queries.
    room: Arc<Semaphore>,
    /// Permits for fast queries, which do not wait for slow ones.
    quick: Arc<Semaphore>,
    /// For tests.
    fail_statements: FailStatements,
}

impl Readers {
    pub(super) fn new(database: &Path, fail_statements: FailStatements) -> Self {
        let room = Arc::new(Semaphore::new(MOST));
        let quick = Arc::new(Semaphore::new(MOST));
        let (database, idle) = (database.to_owned(), Mutex::default());
        let shared = Shared { database, idle, room, quick, fail_statements };
        Self { shared: Arc::new(shared) }
    }

    /// Runs a fast query. It uses a blocking thread, too: a disk can take seconds for one page, and other tasks must
    /// not wait for it.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        self.answer(room(&self.shared.quick).await?, question).await
    }

    /// Runs a slow query on a blocking thread.
    pub(super) async fn ask_aside<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        self.answer(room(&self.shared.room).await?, question).await
    }

    async fn answer<T: Send + 'static>(
        &self,
        room: OwnedSemaphorePermit,
        question: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = self.shared.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let _room = room;
            shared.ask(question)
        });
        asked.await.unwrap_or_else(|error| {
            Err(Error::Failed { doing: "reading".to_owned(), why: error.to_string() })
        })
    }

    /// Like [`Self::ask`], for callers that cannot await.
    pub(super) fn ask_now<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        if self.shared.room.is_closed() {
            return Err(Error::Closed);
        }
        self.shared.ask(question)
    }

    /// Waits until no query runs, and closes all connections.
    pub(super) async fn close(&self) {
        // Running queries return their permits; no new ones are issued after that.
        for room in [&self.shared.room, &self.shared.quick] {
            let all = room.acquire_many(MOST as u32).await;
            room.close();
            drop(all);
        }
        self.shared.idle.lock().clear();
    }
}

async fn room(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    of.clone().acquire_owned().await.map_err(|_| Error::Closed)
}

impl Shared {
    fn ask<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Error> {
        let idle = self.idle.lock().pop();
        let asked = match idle {
            Some(connection) => Ok(connection),
            None => open(&self.database),
        };
        let answered = asked.map_err(Fault::Sqlite).and_then(|connection| {
            self.fail_statements.check()?;
            let answer = question(&connection)?;
            // A connection that failed is not used again.
            self.idle.lock().push(connection);
            Ok(answer)
        });
        answered.map_err(|fault| match fault {
            Fault::Refused(error) => error,
            // A failed read loses no data, so the store need not fail: the next query may succeed.
            Fault::Sqlite(error) => match judge(&error, &self.database.display().to_string()) {
                (Error::Broken(why), _) => Error::Failed { doing: "reading".to_owned(), why },
                (error, _) => error,
            },
        })
    }
}

fn open(database: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(database)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}
