//! What happened to each connection, so that the result of a command can name the hosts that were refused.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

/// How many events wait for a reader before the oldest are dropped.
pub(crate) const CAPACITY: usize = 256;

/// One attempt to connect. Paths and queries of URLs are never in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostEvent {
    /// The host; escaped if it was not a valid one.
    pub host: String,
    /// The port; 0 if the client gave none.
    pub port: u16,
    /// What came of it.
    pub outcome: HostOutcome,
    /// Why, as a sentence for people; empty if it was allowed.
    pub reason: String,
    /// What would allow it, as a sentence for people; empty if it was allowed.
    pub advice: String,
}

/// What came of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostOutcome {
    /// Connected.
    Allowed,
    /// Refused by the rules or the user.
    Denied,
    /// Allowed, but the network made no connection.
    Failed,
}

/// Reads events from the moment it was made.
#[derive(Debug)]
pub struct EventReader(broadcast::Receiver<HostEvent>);

impl EventReader {
    pub(crate) fn new(receiver: broadcast::Receiver<HostEvent>) -> Self {
        Self(receiver)
    }

    /// The events since the last call, in order, and how many were dropped because there were too many. Does not wait.
    ///
    /// An event is there before the client receives its answer, so after a command has ended all its events are.
    pub fn take(&mut self) -> (Vec<HostEvent>, u64) {
        let (mut events, mut dropped) = (Vec::new(), 0);
        loop {
            match self.0.try_recv() {
                Ok(event) => events.push(event),
                Err(TryRecvError::Lagged(count)) => dropped += count,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return (events, dropped),
            }
        }
    }

    /// Waits for the next event; `None` when the proxy has ended. Events that were dropped are skipped.
    pub async fn next(&mut self) -> Option<HostEvent> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
