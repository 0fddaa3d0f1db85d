//! [`Session`]: what several runs have in common.

use std::sync::Arc;

use crate::bus::EventBus;

/// What several runs have in common: an id, and the bus on which they tell what happens. Clones are the same session.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: String,
    bus: EventBus,
}

impl Session {
    /// A session with an id and a bus of its own.
    pub fn new() -> Self {
        Self::with_bus(EventBus::new())
    }

    /// A session that tells what happens on a bus that is there already.
    pub fn with_bus(bus: EventBus) -> Self {
        Self(Arc::new(Inner { id: uuid::Uuid::new_v4().to_string(), bus }))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Where it tells what happens.
    pub fn bus(&self) -> &EventBus {
        &self.0.bus
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}
