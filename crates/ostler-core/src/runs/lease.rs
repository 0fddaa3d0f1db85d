//! The lease of a session: taken as soon as the store can write, renewed until that fails for too long.

use std::time::Duration;

use ostler_base::error::{self, ApiError};
use ostler_store::Error;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Sessions;
use super::pending_outcomes::AGAIN;
use super::worker::Command;
use crate::log::Writer;

/// What came of trying to take a session.
pub(super) enum Taken {
    /// The session is ours.
    Held {
        writer: Writer,
        /// When it was asked for: the lease lasts from then on.
        since: Instant,
        /// What the worker was told meanwhile.
        early: Vec<Command>,
    },
    /// Another server has it.
    Refused { error: ApiError, early: Vec<Command> },
    /// Nobody needs it any more. What is queued stays queued.
    Ends,
}

/// Takes a session. While the store cannot write, which a full disk does, this waits instead of failing what is queued.
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

/// Waits until it is time to try again. Questions are refused at once. `false` if nobody needs the session any more.
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
    ApiError::unavailable("store", "the server can keep nothing at the moment")
        .hint("try again when its disk has room")
}

/// Keeps the session, and says when it is lost.
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

/// Renews; when it did. Tries again until a fifth of the lease is left, which is for ending what works: after the end of
/// the lease another server may begin.
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
