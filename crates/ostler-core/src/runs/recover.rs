//! After a crash: marks active runs as interrupted, and continues queued ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ostler_base::error::{ApiError, Fallible};
use ostler_base::ids;
use ostler_door::users::Caller;
use ostler_store::{Error, Expected, Filter};

use super::pending_outcomes::AGAIN;
use super::worker::{Command, cancelled_outcome};
use super::{NewRun, Sessions};
use crate::model::event;
use crate::model::run::{Attached, Failure, Outcome, Run, RunState, Session};
use crate::records::Kept as _;

/// The prompt for an engine that continues an interrupted turn.
const GO_ON: &str = "You were interrupted. Continue where you stopped.";

impl Sessions {
    /// Looks at all runs that have not ended. Active runs of an earlier server were interrupted; queued ones are queued
    /// again. Runs of other servers are left alone.
    pub async fn recover(self: &Arc<Self>) -> Fallible<()> {
        self.settle_requests().await?;
        for (state, word) in [(RunState::Running, "running"), (RunState::Waiting, "waiting")] {
            for run in self.in_state(word).await? {
                debug_assert_eq!(run.state, state);
                self.mark_interrupted(run).await?;
            }
        }
        for run in self.in_state("queued").await? {
            if let Some((session, _)) = self.records.find::<Session>(&run.session).await? {
                self.command(&session, || Command::Run(run.id.clone())).await?;
            }
        }
        Ok(())
    }

    /// Once per lease, looks for runs without a worker: those whose server has died, and those that this server lost
    /// while it could not write. Also reopens the store after a failure.
    pub fn look_after_runs(self: &Arc<Self>) {
        let (sessions, store, resuming) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let interrupted = self.interrupted.1.lock().take();
        self.tracker.spawn(async move {
            let Some(mut interrupted) = interrupted else { return };
            let stopping = resuming.stopping.clone();
            while let Some(Some(run)) = stopping.run_until_cancelled(interrupted.recv()).await {
                resuming.apply_answer(&run).await;
            }
        });
        self.tracker.spawn(async move {
            while sessions.pause(sessions.log_writers.lease).await {
                if let Err(error) = sessions.sweep().await {
                    tracing::warn!(%error, "runs without a worker could not be looked for");
                }
                if let Err(error) = sessions.count_usage().await {
                    tracing::warn!(%error, "the usage of runs could not be added up");
                }
            }
        });
        self.tracker.spawn(async move {
            while store.pause(AGAIN).await {
                if let Err(error) = store.log_writers.reopen().await {
                    tracing::error!(%error, "the store still fails");
                }
            }
        });
    }

    /// Waits; `false` if the server stops meanwhile.
    async fn pause(&self, time: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(time) => true,
            () = self.stopping.cancelled() => false,
        }
    }

    async fn sweep(self: &Arc<Self>) -> Fallible<()> {
        self.settle_requests().await?;
        // A run that was just stored is about to be sent to a worker.
        let lease = u64::try_from(self.log_writers.lease.as_millis()).unwrap_or(u64::MAX);
        let settled = self.clock.now().saturating_sub(lease);
        let mut by_session: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        for state in ["running", "waiting", "queued"] {
            for run in self.in_state(state).await? {
                if run.created <= settled && !self.as_it_is(run.clone()).state.is_over() {
                    by_session.entry(run.session.clone()).or_default().push(run);
                }
            }
        }
        for (session, runs) in by_session {
            self.adopt(&session, runs).await?;
        }
        Ok(())
    }

    /// The worker itself checks whether it knows the runs.
    async fn adopt(self: &Arc<Self>, session: &str, runs: Vec<Run>) -> Fallible<()> {
        let names: Vec<String> = runs.iter().map(|run| run.id.clone()).collect();
        if let Some(worker) = self.worker(session).filter(|worker| !worker.is_closed()) {
            // If its queue is full, it is asked again later.
            let _ = worker.try_send(Command::Orphans(names));
            return Ok(());
        }
        let Some((kept, _)) = self.records.find::<Session>(session).await? else {
            for run in runs {
                self.cancel_rest(&run).await?;
            }
            return Ok(());
        };
        for run in runs {
            if run.state == RunState::Queued {
                self.command(&kept, || Command::Run(run.id.clone())).await?;
            } else {
                let id = run.id.clone();
                if !self.mark_interrupted(run).await? {
                    self.settle_end(&id, RunState::Interrupted).await;
                }
            }
        }
        Ok(())
    }

    /// Resumes an interrupted run if its request was answered meanwhile.
    async fn apply_answer(self: &Arc<Self>, run: &str) {
        let resuming = async {
            if !self.approvals.has_undelivered(run).await? {
                return Ok(());
            }
            let Some((run, _)) = self.records.find::<Run>(run).await? else { return Ok(()) };
            self.resume(&Caller::on_behalf(&run.owner), &run.id).await.map(drop)
        };
        let resumed: Fallible<()> = resuming.await;
        if let Err(error) = resumed
            && error.detail().code != "already_resumed"
        {
            tracing::warn!(run, %error, "a run whose request was answered could not be resumed");
        }
    }

    /// Cancels a run without a worker, unless it has ended.
    pub(super) async fn cancel_rest(&self, run: &Run) -> Fallible<()> {
        let found = self.records.find::<Run>(&run.id).await?;
        let Some((mut run, version)) = found.filter(|(run, _)| !run.state.is_over()) else {
            return Ok(());
        };
        run.state = RunState::Cancelled;
        run.ended = Some(self.clock.now());
        run.outcome = Some(cancelled_outcome());
        let put = run.put(Expected::Version(version))?;
        self.log_writers.write(&run.session, vec![event::state(&run)?], vec![put]).await?;
        self.changed(&run);
        self.settle_end(&run.id, run.state).await;
        Ok(())
    }

    /// Cancels an interrupted run, and withdraws its requests.
    pub(super) async fn cancel_interrupted(&self, run: Run) -> Fallible<Run> {
        if let Some((session, _)) = self.records.find::<Session>(&run.session).await? {
            self.keep_now(&session, &run.id).await?;
        }
        let found = self.records.find::<Run>(&run.id).await?;
        let Some((mut run, version)) = found else { return Ok(run) };
        if run.state == RunState::Interrupted {
            run.state = RunState::Cancelled;
            run.outcome = Some(cancelled_outcome());
            let put = run.put(Expected::Version(version))?;
            self.log_writers.write(&run.session, vec![event::state(&run)?], vec![put]).await?;
            self.tell_change(&run);
            self.settle_end(&run.id, run.state).await;
        }
        Ok(run)
    }

    async fn in_state(&self, word: &str) -> Fallible<Vec<Run>> {
        let field = Some(("state".to_owned(), word.to_owned()));
        let mut runs: Vec<Run> = self.records.all(Filter { field, ..Filter::default() }).await?;
        runs.sort_by_key(|run| run.created);
        Ok(runs)
    }

    /// Marks a run as interrupted, unless it has ended. Returns `true` if it was cancelled instead, because a user
    /// requested that.
    async fn mark_interrupted(&self, run: Run) -> Fallible<bool> {
        let Some((mut run, version)) = self.records.find::<Run>(&run.id).await? else {
            return Ok(false);
        };
        if run.state.is_over() {
            return Ok(false);
        }
        let failure =
            Failure::new("interrupted", "the server stopped during this run; it can be resumed");
        let interrupted = Outcome { error: Some(failure), ..Outcome::default() };
        let (state, outcome) = match self.is_cancel_requested(&run.id).await {
            true => (RunState::Cancelled, cancelled_outcome()),
            false => (RunState::Interrupted, interrupted),
        };
        (run.state, run.outcome, run.ended) = (state, Some(outcome), Some(self.clock.now()));
        let put = run.put(Expected::Version(version))?;
        let events = self.end_events(&run).await?;
        match self.log_writers.write(&run.session, events, vec![put]).await {
            Ok(_) => {
                self.changed(&run);
                if state == RunState::Cancelled {
                    self.settle_end(&run.id, state).await;
                }
                Ok(state == RunState::Cancelled)
            }
            // Another server is handling it.
            Err(Error::Held { .. } | Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Resumes an interrupted run, as a new run.
    pub async fn resume(self: &Arc<Self>, caller: &Caller, id: &str) -> Fallible<Run> {
        let run = self.find_run(caller, id).await?;
        if run.state != RunState::Interrupted {
            let message =
                format!("only an interrupted run can be resumed, and this one is {:?}", run.state);
            return Err(ApiError::conflict("not_interrupted", message.to_lowercase()));
        }
        let session = self.find(caller, &run.session).await?;
        self.keep_now(&session, &run.id).await?;
        let id = ids::of("run", &format!("resume {}", run.id));
        if self.records.find::<Run>(&id).await?.is_some() {
            return Err(already_resumed(&id));
        }
        let unattended = run.unattended;
        let new = match session.engine_session {
            Some(_) => NewRun::text(GO_ON),
            // An engine without any message has no conversation to continue.
            None => {
                let attached = self.records.find::<Attached>(&run.id).await?;
                let content = attached.map(|(attached, _)| attached.content);
                NewRun { content, ..NewRun::text(run.prompt) }
            }
        };
        let new = NewRun { id: Some(id.clone()), unattended, is_first: true, ..new };
        self.submit(&session, new).await.map_err(|error| match error.detail().code.as_ref() {
            "changed" => already_resumed(&id),
            _ => error,
        })
    }
}

fn already_resumed(by: &str) -> ApiError {
    let message = format!("the run was resumed already, as {by}");
    ApiError::conflict("already_resumed", message).hint("follow that run, or send another prompt")
}
