//! [`Session`]: an id and an event bus for several runs.

use std::sync::Arc;

use crate::bus::EventBus;

/// An id and an event bus that several runs share. Clones are the same session.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: String,
    bus: EventBus,
}

impl Session {
    /// A session with its own id and bus.
    pub fn new() -> Self {
        Self::with_bus(EventBus::new())
    }

    /// A session on an existing bus.
    pub fn with_bus(bus: EventBus) -> Self {
        Self(Arc::new(Inner { id: uuid::Uuid::new_v4().to_string(), bus }))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The bus for its events.
    pub fn bus(&self) -> &EventBus {
        &self.0.bus
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}
