//! The shared state of a server's routes.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::gate::Gates;
use crate::journal::Journal;
use crate::message::Ids;
use crate::patience::Patience;
use crate::rulebook::Rulebook;
use crate::script::Script;

/// The shared state of a server. Clones share it.
#[derive(Clone)]
pub(crate) struct State {
    rulebook: Arc<Mutex<Rulebook>>,
    pub(crate) journal: Journal,
    pub(crate) gates: Arc<Gates>,
    pub(crate) ids: Arc<Ids>,
}

impl State {
    /// `runtime` is the runtime of the server, whose clock measures all timeouts.
    pub(crate) fn new(script: Script, runtime: Handle) -> Self {
        let patience = Patience::new(runtime);
        Self {
            rulebook: Arc::new(Mutex::new(Rulebook::new(script))),
            journal: Journal::new(patience.clone()),
            gates: Arc::new(Gates::new(patience)),
            ids: Arc::default(),
        }
    }

    pub(crate) fn rulebook(&self) -> MutexGuard<'_, Rulebook> {
        self.rulebook.lock()
    }
}
