//! Reports a failed start to a program that sends frames.
//!
//! That program is about to send `initialize`. If this one simply exited, the other would see a broken pipe instead of
//! the reason. So the reason is sent as a result and as the answer to `initialize`, and this program exits after the
//! end of the input.

use std::time::Duration;

use ostler::engine::sessions;
use ostler_proto::control::{AskEngine, ControlResponse};
use ostler_proto::frame::{Frame as _, ToEngine, ToHost};
use ostler_proto::message::TurnResult;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::output;

/// How long the host may take to read the reason and close the input.
const LIMIT: Duration = Duration::from_secs(5);

/// Reports why the session cannot start, and waits until the host has read it.
///
/// # Errors
/// When the output cannot be written.
pub(crate) async fn tell(reason: &str, result: Option<TurnResult>) -> std::io::Result<()> {
    let result = result.unwrap_or_else(|| sessions::failed_start(None, reason));
    output::result(result)?;
    // A host that keeps its side open had enough time.
    tokio::time::timeout(LIMIT, answer(reason)).await.unwrap_or(Ok(()))
}

async fn answer(reason: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
    while let Some(line) = lines.next_segment().await? {
        let frame = ToEngine::from_line(&String::from_utf8_lossy(&line));
        let Ok(ToEngine::ControlRequest(request)) = frame else { continue };
        let id = request.request_id.unwrap_or_default();
        let reason = match request.request {
            AskEngine::Initialize(_) => reason.to_owned(),
            _ => format!("there is no session: {reason}"),
        };
        output::write(&ToHost::ControlResponse(ControlResponse::error(id, reason)).to_line())?;
    }
    Ok(())
}
