//! Connections that read, some at a time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fault::{Fault, judge};
use super::schema::connect;
use crate::Error;

/// At most so many at a time; there is little to gain beyond the number of processors.
const MOST: usize = 4;

#[derive(Clone)]
pub(super) struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// For questions that may take a while.
    room: Arc<Semaphore>,
    /// For those that are quickly answered, which do not wait for the others.
    quick: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(database: &Path) -> Self {
        let room = Arc::new(Semaphore::new(MOST));
        let quick = Arc::new(Semaphore::new(MOST));
        let shared = Shared { database: database.to_owned(), idle: Mutex::default(), room, quick };
        Self { shared: Arc::new(shared) }
    }

    /// Answers a question that is quickly answered. On a thread for such things all the same: a disk can take seconds for
    /// one page, and so long nothing else would go on.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        self.answer(room(&self.shared.quick).await?, question).await
    }

    /// Answers a question that may take a while, on a thread for such things.
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

    /// Like [`Self::ask`], for who cannot wait.
    pub(super) fn ask_now<T>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        if self.shared.room.is_closed() {
            return Err(Error::Closed);
        }
        self.shared.ask(question)
    }

    /// Waits until nobody reads, and closes all connections.
    pub(super) async fn close(&self) {
        // Who has a permit gives it back when done; nobody gets a new one after that.
        for room in [&self.shared.room, &self.shared.quick] {
            let all = room.acquire_many(MOST as u32).await;
            room.close();
            drop(all);
        }
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

async fn room(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    of.clone().acquire_owned().await.map_err(|_| Error::Closed)
}

impl Shared {
    fn ask<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let asked = match idle {
            Some(connection) => Ok(connection),
            None => open(&self.database),
        };
        let answered = asked.map_err(Fault::Sqlite).and_then(|connection| {
            let answer = question(&connection)?;
            // One that failed is not used again.
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            Ok(answer)
        });
        answered.map_err(|fault| match fault {
            Fault::Refused(error) => error,
            // Whoever only reads has written nothing that could be lost: the next question may be answered.
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
