//! The contract that every store must fulfil.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ostler_store::contract::Subject;
use ostler_store::{Sqlite, Store};
use tempfile::TempDir;

use crate::clock::TestClock;

struct InFolder {
    store: Arc<Sqlite>,
    clock: TestClock,
    _folder: TempDir,
}

async fn subject() -> InFolder {
    let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let store = Sqlite::open_with(folder.path(), Arc::new(clock.clone())).await.unwrap();
    InFolder { store: Arc::new(store), clock, _folder: folder }
}

#[async_trait]
impl Subject for InFolder {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    // A folder belongs to one process.
    fn other(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }
}

ostler_store::contract_tests!(subject());
