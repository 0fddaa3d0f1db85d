//! A limit on the sessions of one user.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use ostler_base::error::{ApiError, Fallible};
use ostler_store::{Filter, Store};

/// How many sessions users have. Deleted ones are noticed when the limit is reached; then all are counted again.
pub struct SessionRoom {
    store: Arc<dyn Store>,
    most: usize,
    counted: Mutex<HashMap<String, usize>>,
}

impl SessionRoom {
    pub fn new(store: Arc<dyn Store>, most: usize) -> Self {
        Self { store, most, counted: Mutex::default() }
    }

    /// Refuses a session if the user has reached the limit.
    pub async fn take(&self, user: &str) -> Fallible<()> {
        if self.count_one_more(user, None) {
            return Ok(());
        }
        let filter = Filter { owner: Some(user.to_owned()), ..Filter::default() };
        let found = self.store.count("session", &filter, self.most).await?;
        if self.count_one_more(user, Some(found)) {
            return Ok(());
        }
        let message = format!("you have {} sessions, the maximum for one user", self.most);
        let wait = std::time::Duration::from_secs(60);
        Err(ApiError::too_many(message, wait).hint("delete sessions that you no longer need"))
    }

    fn count_one_more(&self, user: &str, found: Option<usize>) -> bool {
        let mut counted = self.counted.lock();
        let Some(before) = found.or_else(|| counted.get(user).copied()) else { return false };
        let has_room = before < self.most;
        counted.insert(user.to_owned(), if has_room { before + 1 } else { before });
        has_room
    }
}
