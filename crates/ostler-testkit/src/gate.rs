//! Gates: points where a response waits until the test releases it.

use parking_lot::Mutex;
use std::collections::HashMap;

use tokio::sync::watch;

use crate::patience::Patience;

/// A named point where responses wait. Once released it stays open.
#[derive(Clone)]
pub struct Gate {
    name: String,
    state: watch::Sender<GateState>,
    patience: Patience,
}

impl Gate {
    /// Waits until a response has reached this gate, now or earlier.
    ///
    /// # Panics
    /// If none does within [`WAIT_LIMIT`](crate::WAIT_LIMIT).
    pub async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// Waits until this many responses have reached this gate.
    ///
    /// # Panics
    /// If they do not within [`WAIT_LIMIT`](crate::WAIT_LIMIT).
    pub async fn reached_by(&self, arrivals: usize) {
        if !self.is_reached_by(arrivals).await {
            panic!(
                "gate {:?} was reached {} times within the limit, not {arrivals}",
                self.name,
                self.arrivals()
            );
        }
    }

    /// How many responses have reached this gate.
    pub fn arrivals(&self) -> usize {
        self.state.borrow().arrivals
    }

    /// Opens the gate for all waiting and all future responses.
    pub fn release(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Waits until this many responses have reached this gate; false after the limit.
    pub(crate) async fn is_reached_by(&self, arrivals: usize) -> bool {
        let mut state = self.state.subscribe();
        self.patience.wait(state.wait_for(|state| state.arrivals >= arrivals)).await.is_some()
    }

    /// Records an arrival and waits until the gate is open.
    pub(crate) async fn pass(&self) {
        self.state.send_modify(|state| state.arrivals += 1);
        let mut state = self.state.subscribe();
        // The sender is `self.state`, so the channel cannot close while this waits.
        let _ = state.wait_for(|state| state.open).await;
    }
}

/// All gates of one server, created when first named.
pub(crate) struct Gates {
    known: Mutex<HashMap<String, Gate>>,
    patience: Patience,
}

impl Gates {
    pub(crate) fn new(patience: Patience) -> Self {
        Self { known: Mutex::default(), patience }
    }

    pub(crate) fn named(&self, name: &str) -> Gate {
        let mut known = self.known.lock();
        let make = || Gate {
            name: name.to_owned(),
            state: watch::Sender::default(),
            patience: self.patience.clone(),
        };
        known.entry(name.to_owned()).or_insert_with(make).clone()
    }
}

#[derive(Default)]
struct GateState {
    arrivals: usize,
    open: bool,
}
