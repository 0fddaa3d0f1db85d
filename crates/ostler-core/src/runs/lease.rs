//! The lease of a session: acquired as soon as the store can write, and renewed until that fails for too long.

use std::time::Duration;

use ostler_base::error::{self, ApiError};
use ostler_store::Error;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Sessions;
use super::pending_outcomes::AGAIN;
use super::worker::Command;
use crate::log::Writer;

/// The result of acquiring the lease of a session.
pub(super) enum Taken {
    /// This server has the lease.
    Held {
        writer: Writer,
        /// When it was requested: the lease lasts from then on.
        since: Instant,
        /// Commands that arrived meanwhile.
        early: Vec<Command>,
    },
    /// Another server has it.
    Refused { error: ApiError, early: Vec<Command> },
    /// It is not needed any more. Queued runs stay queued.
    Ends,
}

/// Acquires the lease of a session. While the store cannot write, as with a full disk, this waits instead of failing
/// queued runs.
pub(super) async fn take(
    sessions: &Sessions,
    session: &str,
    commands: &mut mpsc::Receiver<Command>,
) -> Taken {
    let mut early = Vec::new();
    loop {
        let error = match sessions.log_writers.open(session).await {
            Ok((writer, since)) => return Taken::Held { writer, since, early },
            Err(error) => error,
        };
        if error.detail().code == "held_elsewhere" || !error::is_of_store(&error) {
            return Taken::Refused { error, early };
        }
        tracing::warn!(session, %error, "a session cannot be taken over yet");
        if !wait(sessions, commands, &mut early).await {
            return Taken::Ends;
        }
    }
}

/// Waits until it is time to retry. Questions are refused at once. `false` if the session is not needed any more.
async fn wait(
    sessions: &Sessions,
    commands: &mut mpsc::Receiver<Command>,
    early: &mut Vec<Command>,
) -> bool {
    let again = tokio::time::sleep(AGAIN);
    tokio::pin!(again);
    loop {
        tokio::select! {
            () = &mut again => return true,
            () = sessions.stopping.cancelled() => return false,
            command = commands.recv() => match command {
                None | Some(Command::Close(_)) => return false,
                Some(Command::Push { taken, .. }) => {
                    let _ = taken.send(None);
                }
                Some(Command::Rewind(rewind)) => {
                    let _ = rewind.answer.try_send(Err(cannot_write()));
                }
                Some(Command::Engine(wants)) => {
                    let _ = wants.give.try_send(Err(cannot_write()));
                }
                Some(command) => early.push(command),
            },
        }
    }
}

fn cannot_write() -> ApiError {
    ApiError::unavailable("store", "the server cannot store anything at the moment")
        .hint("try again when its disk has free space")
}

/// Renews the lease, and notifies when it is lost.
pub(super) async fn keep(
    writer: Writer,
    lasting: Duration,
    mut since: Instant,
    held: watch::Sender<bool>,
) {
    loop {
        tokio::time::sleep_until(since + lasting / 3).await;
        match renewed(&writer, lasting, since).await {
            Some(renewed) => since = renewed,
            None => {
                let _ = held.send(false);
                return;
            }
        }
    }
}

/// Renews the lease; returns when. Retries until a fifth of the lease is left, which is needed to end active runs:
/// after the end of the lease another server may begin.
async fn renewed(writer: &Writer, lasting: Duration, since: Instant) -> Option<Instant> {
    let last = since + lasting * 4 / 5;
    let mut pause = lasting / 60;
    loop {
        let begun = Instant::now();
        match tokio::time::timeout_at(last, writer.renew(lasting)).await {
            Ok(Ok(())) => return Some(begun),
            Ok(Err(Error::Fenced { .. } | Error::Held { .. } | Error::Closed)) | Err(_) => {
                return None;
            }
            Ok(Err(error)) => tracing::warn!(%error, "a lease cannot be renewed yet"),
        }
        if Instant::now() + pause >= last {
            return None;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(lasting / 15);
    }
}
