//! Delivers a planned body over HTTP: bytes, pauses, gates, and the faults of a connection.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures::stream;

use crate::gate::Gates;
use crate::journal::Entry;
use crate::plan::Step;
use crate::record::Outcome;

/// A response body that performs `steps` and records in `entry` how it ended.
pub(crate) fn body(steps: Vec<Step>, gates: Arc<Gates>, entry: Entry) -> Body {
    let playback = Playback { steps: steps.into(), gates, entry };
    Body::from_stream(stream::unfold(playback, async |mut playback| {
        let item = playback.next().await?;
        Some((item, playback))
    }))
}

struct Playback {
    steps: VecDeque<Step>,
    gates: Arc<Gates>,
    entry: Entry,
}

impl Playback {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.steps.pop_front() {
                Some(Step::Send(bytes)) => return Some(Ok(bytes.into())),
                Some(Step::Wait(duration)) => tokio::time::sleep(duration).await,
                Some(Step::Gate(name)) => self.gates.named(&name).pass().await,
                // Ends when the client leaves or the server stops; both drop this future.
                Some(Step::Stall) => std::future::pending().await,
                Some(Step::Cut) => {
                    // The connection flushes its buffer when the body is not ready. Without this pause, an error right
                    // after the last event would discard that event.
                    tokio::task::yield_now().await;
                    self.entry.end(Outcome::Cut);
                    return Some(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                None => {
                    self.entry.end(Outcome::Complete);
                    return None;
                }
            }
        }
    }
}
