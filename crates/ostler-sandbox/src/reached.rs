//! A limit that a command has reached, and the text about it.

use std::sync::{Arc, Mutex, PoisonError};

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Processes,
    Memory,
    CpuSeconds,
    Disk,
    Files,
}

/// Whose use is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All processes of a command together.
    Command,
    /// All commands of a session together.
    Session,
}

/// A limit that a command has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    pub(crate) resource: Resource,
    pub(crate) scope: Scope,
    pub(crate) most: u64,
}

impl ReachedLimit {
    /// The name of its setting.
    pub(crate) fn setting(&self) -> String {
        let name = match self.resource {
            Resource::Processes => "processes",
            Resource::Memory => "memory",
            Resource::CpuSeconds => "cpuSeconds",
            Resource::Disk => "disk",
            Resource::Files => "files",
        };
        match self.scope {
            Scope::Command => format!("sandbox.limits.{name}"),
            Scope::Session => format!("sandbox.limits.session.{name}"),
        }
    }
}

/// The first limit that a command has reached, which is mostly the cause of the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstReached(Arc<Mutex<Option<ReachedLimit>>>);

impl FirstReached {
    pub(crate) fn set(&self, limit: ReachedLimit) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(limit);
    }

    pub(crate) fn limit(&self) -> Option<ReachedLimit> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
