//! The connection to a run's client, which may be slow, outdated or gone.

use std::time::Duration;

use ostler_agui::downgrade::for_old_peer;
use ostler_agui::event::Event;
use ostler_agui::verify::Verifier;
use tokio::sync::mpsc;

/// How long a client may accept nothing before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connection to one client.
pub(super) struct Outlet {
    events: mpsc::Sender<Event>,
    old_peer: bool,
    verifier: Verifier,
    gone: bool,
    ended: bool,
}

impl Outlet {
    pub(super) fn new(events: mpsc::Sender<Event>, old_peer: bool) -> Self {
        Self { events, old_peer, verifier: Verifier::default(), gone: false, ended: false }
    }

    /// Sends events. If the client is gone, they are dropped without waiting.
    pub(super) async fn send(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            if cfg!(debug_assertions)
                && let Err(violation) = self.verifier.check(&event)
            {
                panic!("the run would be refused by clients: {violation}: {}", event.to_json());
            }
            self.ended |= event.is_terminal();
            let event = if self.old_peer { for_old_peer(event) } else { event };
            if !self.gone {
                self.gone = self.events.send_timeout(event, PATIENCE).await.is_err();
            }
        }
    }

    /// Whether the end of the run was sent.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Waits until the client disconnects.
    pub(super) async fn closed(&self) {
        self.events.closed().await;
    }
}
