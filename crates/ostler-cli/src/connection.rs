//! What this program does to an engine without the SDK: the raw pipe's interrupt, and the end.

use std::time::Duration;

use ostler_engine::session::Connection;
use ostler_proto::control::{AskEngine, ControlRequest, Interrupt};
use ostler_proto::frame::ToEngine;
use ostler_proto::{Extra, RequestId};
use tokio::sync::mpsc;

/// How long a session may take to end what it runs.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// The id of our request to stop the turn.
pub(crate) const INTERRUPT: &str = "terminal-interrupt";

/// The request to stop the turn.
pub(crate) fn interrupt() -> ToEngine {
    ToEngine::ControlRequest(ControlRequest {
        request_id: Some(RequestId::from(INTERRUPT)),
        request: AskEngine::Interrupt(Interrupt::default()),
        extra: Extra::default(),
    })
}

/// Ends a session, whatever it is doing, and waits until everything it ran has ended.
pub(crate) async fn end(connection: Connection) {
    let Connection { to_engine, from_engine } = connection;
    drop(from_engine);
    ended(to_engine).await;
}

/// Waits for the end of a session whose frames nobody reads any more: it stops what runs, and then takes no more input.
pub(crate) async fn ended(to_engine: mpsc::Sender<ToEngine>) {
    // What has not ended by then ends with this program.
    let _ = tokio::time::timeout(END_TIMEOUT, to_engine.closed()).await;
}
