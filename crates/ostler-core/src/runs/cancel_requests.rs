//! Requests to cancel a run, stored from their acceptance until the run ends.
//!
//! A run with such a request ends as cancelled, also when the server stops, the disk fails or the lease is lost before
//! the engine has stopped. Two rules ensure that: [`Sessions::cancel`] stores the request before it reads the run, and
//! the code that writes an interruption looks for a request afterwards ([`Sessions::settle_end`]). So one of the two
//! sees the other.

use ostler_base::error::{ApiError, Fallible};
use ostler_store::Filter;
use serde::{Deserialize, Serialize};

use super::Sessions;
use super::pending_outcomes::Ended;
use super::worker::cancelled_outcome;
use crate::model::run::{Run, RunState, Session};
use crate::records::kept;

/// A user's request to cancel a run.
#[derive(Debug, Serialize, Deserialize)]
struct CancelRequest {
    /// The id of the run.
    id: String,
    owner: String,
    session: String,
}

kept!(CancelRequest, "cancelRequest");

impl Sessions {
    /// Stores the request in memory and in the store. It applies in this process even if the store refuses it.
    pub(super) async fn request_cancel(&self, run: &Run) -> Fallible<()> {
        let Run { id, owner, session, .. } = run.clone();
        self.cancelling.lock().insert(id.clone());
        let kept = self.records.save(&CancelRequest { id, owner, session }).await;
        kept.map_err(|error| not_recorded(&error))
    }

    /// Whether a request to cancel this run was accepted, by this server or an earlier one.
    pub(super) async fn is_cancel_requested(&self, run: &str) -> bool {
        self.is_cancelling(run)
            || matches!(self.records.find::<CancelRequest>(run).await, Ok(Some(_)))
    }

    /// The same, without reading the store.
    pub(super) fn is_cancelling(&self, run: &str) -> bool {
        self.cancelling.lock().contains(run)
    }

    /// Removes the request of a run that has ended.
    pub(super) async fn forget_cancel(&self, run: &str) {
        // Read first: most runs have none, and removing is a commit.
        if self.is_cancel_requested(run).await {
            // A request that stays does no harm, and is deleted with its session.
            let _ = self.records.remove::<CancelRequest>(run).await;
        }
        self.cancelling.lock().remove(run);
    }

    /// How a run ended: cancelled instead of interrupted if that was requested.
    pub(super) async fn unless_cancelled(&self, ended: &Ended) -> Ended {
        let mut ended = ended.clone();
        if ended.state == RunState::Interrupted && self.is_cancel_requested(&ended.run).await {
            ended.cancel();
        }
        ended
    }

    /// Settles all requests that are still open, as after a crash or a disk failure at the wrong moment. Active runs
    /// are ended by their worker, or found by `sweep`.
    pub(super) async fn settle_requests(&self) -> Fallible<()> {
        let requests: Vec<CancelRequest> = self.records.all(Filter::default()).await?;
        for CancelRequest { id, session, .. } in requests {
            let state = self.records.find::<Run>(&id).await?.map(|(run, _)| (run.state, run));
            match state {
                Some((RunState::Interrupted, _)) => self.cancel_kept(&id).await,
                Some((RunState::Queued, run)) if self.worker(&session).is_none() => {
                    self.cancel_rest(&run).await?;
                }
                Some((state, _)) if !state.is_over() => {}
                _ => self.forget_cancel(&id).await,
            }
        }
        Ok(())
    }

    /// Cancels a run whose interruption was written at the moment of the request.
    pub(super) async fn cancel_kept(&self, run: &str) {
        let cancelling = async {
            match self.records.find::<Run>(run).await? {
                Some((run, _)) => self.cancel_interrupted(run).await.map(drop),
                None => Ok(()),
            }
        };
        let cancelled: Fallible<()> = cancelling.await;
        if let Err(error) = cancelled {
            tracing::warn!(run, %error, "a run could not be cancelled");
        }
    }

    /// Stores how a run ended if only this process knows it, so that the caller's answer is on disk.
    pub(super) async fn keep_end(&self, run: &Run) -> Fallible<()> {
        match self.records.find::<Session>(&run.session).await? {
            Some((session, _)) => self.keep_now(&session, &run.id).await,
            None => Ok(()),
        }
    }
}

impl Ended {
    pub(super) fn cancel(&mut self) {
        (self.state, self.outcome) = (RunState::Cancelled, cancelled_outcome());
    }
}

fn not_recorded(error: &ApiError) -> ApiError {
    let message = format!(
        "the run is being stopped, but the server cannot record that: {}",
        error.detail().message
    );
    ApiError::unavailable("store", message)
        .hint("if the run is interrupted after a restart of the server, cancel it again")
}
