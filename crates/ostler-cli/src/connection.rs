//! Stopping an engine without the SDK: the interrupt of the raw pipe, and ending the session.

use std::time::Duration;

use ostler_engine::session::Connection;
use ostler_proto::RequestId;
use ostler_proto::control::{AskEngine, ControlRequest, Interrupt};
use ostler_proto::frame::ToEngine;
use tokio::sync::mpsc;

/// How long a session may take to end its tools and tasks.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// The id of our request to stop the turn.
pub(crate) const INTERRUPT: &str = "terminal-interrupt";

/// The request to stop the turn.
pub(crate) fn interrupt() -> ToEngine {
    let request = AskEngine::Interrupt(Interrupt::default());
    ToEngine::ControlRequest(ControlRequest::new(RequestId::from(INTERRUPT), request))
}

/// Ends a session, whatever it is doing, and waits until its tools and tasks have ended.
pub(crate) async fn end(connection: Connection) {
    let Connection { to_engine, from_engine } = connection;
    drop(from_engine);
    ended(to_engine).await;
}

/// Waits for the end of a session whose frames are no longer read: it stops its work and then closes its input.
pub(crate) async fn ended(to_engine: mpsc::Sender<ToEngine>) {
    // Whatever still runs after the timeout ends with this program.
    let _ = tokio::time::timeout(END_TIMEOUT, to_engine.closed()).await;
}
