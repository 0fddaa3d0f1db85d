//! Our end of a session: frames in both directions, looked at before their turn where somebody waits for one.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Context;
use ostler_engine::session::Connection;
use ostler_proto::control::{AskEngine, ControlRequest, Interrupt};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::{Extra, RequestId};

/// How long a session may take to end what it runs.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many frames are put aside while the user thinks about a question. Then the engine waits, too.
const MOST_WAITING: usize = 1_000;
/// Our request to stop the turn.
pub(crate) const INTERRUPT: &str = "terminal-interrupt";

/// A session's other end.
pub(crate) struct Engine {
    connection: Connection,
    /// Frames that came while nobody looked for them.
    waiting: VecDeque<ToHost>,
}

impl Engine {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, waiting: VecDeque::new() }
    }

    /// The next frame.
    pub(crate) async fn next(&mut self) -> anyhow::Result<ToHost> {
        match self.waiting.pop_front() {
            Some(frame) => Ok(frame),
            None => self.connection.from_engine.recv().await.context("the engine has gone"),
        }
    }

    pub(crate) async fn send(&self, frame: ToEngine) -> anyhow::Result<()> {
        self.connection.to_engine.send(frame).await.context("the engine has gone")
    }

    /// Asks it to stop the turn.
    pub(crate) async fn interrupt(&self) -> anyhow::Result<()> {
        self.send(interrupt()).await
    }

    /// Whether a question has been withdrawn that was not answered yet.
    pub(crate) fn has_withdrawn(&self, id: &RequestId) -> bool {
        self.waiting.iter().any(|frame| is_withdrawal(frame, id))
    }

    /// Waits until a question is withdrawn.
    pub(crate) async fn withdrawal(&mut self, id: &RequestId) -> anyhow::Result<()> {
        while !self.has_withdrawn(id) {
            if self.waiting.len() >= MOST_WAITING {
                std::future::pending::<()>().await;
            }
            let frame = self.connection.from_engine.recv().await;
            self.waiting.push_back(frame.context("the engine has gone")?);
        }
        Ok(())
    }

    /// Ends the session, whatever it is doing, and waits until everything it ran has ended.
    pub(crate) async fn end(self) {
        end(self.connection).await;
    }
}

/// The request to stop the turn.
pub(crate) fn interrupt() -> ToEngine {
    ToEngine::ControlRequest(ControlRequest {
        request_id: Some(RequestId::from(INTERRUPT)),
        request: AskEngine::Interrupt(Interrupt::default()),
        extra: Extra::default(),
    })
}

/// Ends a session, and waits for it.
pub(crate) async fn end(connection: Connection) {
    let Connection { to_engine, from_engine } = connection;
    // Nobody reads any more, so it stops what runs and goes; then nobody takes what we send.
    drop(from_engine);
    let _ = tokio::time::timeout(PATIENCE, to_engine.closed()).await;
}

fn is_withdrawal(frame: &ToHost, id: &RequestId) -> bool {
    matches!(frame, ToHost::ControlCancelRequest(cancel) if cancel.request_id == *id)
}
