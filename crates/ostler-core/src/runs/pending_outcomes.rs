//! Outcomes of runs that could not be stored, because the disk is full or the store fails. They stay in memory, and are
//! reported from there, until they can be stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ostler_base::error::Fallible;
use ostler_store::{Error, Expected, Put};
use tokio::sync::mpsc;

use super::Sessions;
use super::day_usage::UncountedUsage;
use super::edits::RunChanges;
use super::meter::Used;
use super::worker::{Command, cancelled_outcome};
use crate::approvals::audit::Audited;
use crate::model::run::{Attached, Outcome, Run, RunState, Session};
use crate::model::tally::{self, RunUsage};
use crate::records::Kept as _;

/// The delay before the next attempt.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// The outcome of a run.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) run: String,
    pub(super) state: RunState,
    pub(super) outcome: Outcome,
    pub(super) at: u64,
    /// Its usage.
    pub(super) used: Used,
}

impl Ended {
    pub(super) fn note(&self, run: &mut Run) {
        run.state = self.state;
        run.ended = Some(self.at);
        run.outcome = Some(self.outcome.clone());
    }
}

impl Sessions {
    /// Updates a run that was read from its record with a newer outcome, if there is one.
    pub fn as_it_is(&self, mut run: Run) -> Run {
        let pending_outcomes = self.pending_outcomes.lock();
        // A record of an ended run is newer: an interrupted run may have been cancelled since.
        if !run.state.is_over()
            && let Some(ended) = pending_outcomes.get(&run.id)
        {
            let mut ended = ended.clone();
            if ended.state == RunState::Interrupted && self.is_cancelling(&run.id) {
                ended.cancel();
            }
            ended.note(&mut run);
        }
        run
    }

    /// Ended runs whose records do not say so yet. Empty while the store can write.
    pub fn over_but_not_written(&self) -> Vec<String> {
        self.pending_outcomes.lock().keys().cloned().collect()
    }

    /// Stores the outcomes of a session's runs as soon as that is possible; then continues with the remaining commands.
    pub(super) fn keep_later(
        self: &Arc<Self>,
        session: Session,
        ended: Vec<Ended>,
        mut left: VecDeque<String>,
        commands: mpsc::Receiver<Command>,
    ) {
        // Before the worker is gone: a run must not look active when no worker has it.
        let mut runs = self.remember(ended);
        let cancelled = self.leave(&session.id, commands, &mut left);
        runs.extend(self.remember(cancelled));
        if runs.is_empty() && left.is_empty() {
            return;
        }
        let sessions = Arc::clone(self);
        self.tracker.spawn(async move {
            for run in runs {
                sessions.keep(&session, &run).await;
            }
            for run in left {
                // Runs that have not begun when the server stops stay queued.
                if sessions.stopping.is_cancelled() {
                    return;
                }
                if let Err(error) = sessions.command(&session, || Command::Run(run.clone())).await {
                    tracing::error!(run, %error, "a queued run could not begin");
                }
            }
        });
    }

    /// Makes the outcomes of these runs visible. Returns the ids of the runs.
    fn remember(&self, ended: Vec<Ended>) -> Vec<String> {
        let runs = ended.iter().map(|ended| ended.run.clone()).collect();
        let mut pending_outcomes = self.pending_outcomes.lock();
        pending_outcomes.extend(ended.into_iter().map(|ended| (ended.run.clone(), ended)));
        runs
    }

    /// Handles the commands that a worker did not process any more. Returns the outcomes of runs that ended by that.
    fn leave(
        &self,
        session: &str,
        mut commands: mpsc::Receiver<Command>,
        left: &mut VecDeque<String>,
    ) -> Vec<Ended> {
        let mut ended = Vec::new();
        self.gone_closed(session, &mut commands);
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::Run(run) => left.push_back(run),
                Command::Cancel(run) if left.contains(&run) => {
                    left.retain(|queued| *queued != run);
                    let (state, outcome) = (RunState::Cancelled, cancelled_outcome());
                    let (at, used) = (self.clock.now(), Used::default());
                    ended.push(Ended { run, state, outcome, at, used });
                }
                // The closed channel is the answer. A request to cancel is stored.
                _ => {}
            }
        }
        ended
    }

    /// Retries until it works, or until another server is responsible.
    async fn keep(&self, session: &Session, run: &str) {
        let known = || self.pending_outcomes.lock();
        let Some(ended) = known().get(run).cloned() else { return };
        let state = loop {
            match self.try_to_keep(session, &ended).await {
                Ok(state) => break state,
                // Another server has the session, and marks the runs that it finds.
                Err(Error::Held { .. }) => break Some(ended.state),
                // It is marked when the server starts again.
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(run, %error, "the end of a run cannot be stored yet");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                // It is marked when the server starts again.
                () = self.stopping.cancelled() => return,
            }
        };
        known().remove(run);
        self.settle_end(run, state.unwrap_or(ended.state)).await;
    }

    /// Cleans up after the end of a run was stored.
    pub(super) async fn settle_end(&self, run: &str, state: RunState) {
        if state == RunState::Interrupted {
            if self.is_cancel_requested(run).await {
                return Box::pin(self.cancel_kept(run)).await;
            }
            // Not here: resuming starts a worker, and this may be one.
            let _ = self.interrupted.0.send(run.to_owned());
            return;
        }
        self.approvals.withdraw_all(run).await;
        // Most runs have none, and one that stays does no harm.
        let _ = self.records.remove::<Attached>(run).await;
        self.forget_cancel(run).await;
    }

    /// Stores the outcome of a run at once, if that is not done yet.
    pub(super) async fn keep_now(&self, session: &Session, run: &str) -> Fallible<()> {
        let ended = self.pending_outcomes.lock().get(run).cloned();
        match ended {
            Some(ended) => match self.try_to_keep(session, &ended).await {
                // Another task has done so at the same moment.
                Err(Error::Conflict { .. }) => Ok(()),
                kept => Ok(kept.map(drop)?),
            },
            None => Ok(()),
        }
    }

    /// The current state of the run; `None` if there is no such run.
    async fn try_to_keep(
        &self,
        session: &Session,
        ended: &Ended,
    ) -> Result<Option<RunState>, Error> {
        let unread = |error: ostler_base::error::ApiError| Error::Failed {
            doing: format!("reading {}", ended.run),
            why: error.to_string(),
        };
        let Some((mut run, version)) =
            self.records.find::<Run>(&ended.run).await.map_err(unread)?
        else {
            return Ok(None);
        };
        if run.state.is_over() {
            return Ok(Some(run.state));
        }
        let ended = &self.unless_cancelled(ended).await;
        ended.note(&mut run);
        let events = self.end_events(&run).await.map_err(unread)?;
        let put = run.put(Expected::Version(version)).map_err(unread)?;
        let puts = self.end_puts(ended, &run).await.map_err(unread)?;
        let puts = [put].into_iter().chain(puts).collect();
        self.log_writers.write(&session.id, events, puts).await?;
        self.changed(&run);
        Ok(Some(run.state))
    }

    /// The further writes at the end of a run: its usage, and the totals in its session's record.
    pub(super) async fn end_puts(&self, ended: &Ended, run: &Run) -> Fallible<Vec<Put>> {
        let spent = ended.used.spent();
        let session = self.session_put(&run.session, |session| {
            session.touch(ended.at);
            session.tally.spent.add(&spent);
        });
        let mut puts: Vec<Put> = session.await?.into_iter().collect();
        if let Some(sandbox) = &ended.outcome.sandbox {
            puts.push(Audited::of_run(run, sandbox, ended.at).put(Expected::Absent)?);
        }
        if ended.used == Used::default() {
            return Ok(puts);
        }
        let (usage, changes) = (usage(ended, run), changes(ended, run));
        puts.extend(self.totals_put(&run.session, &usage, &changes).await?);
        puts.push(UncountedUsage::from(&usage).put(Expected::Any)?);
        puts.push(usage.put(Expected::Any)?);
        if !changes.files.is_empty() {
            puts.push(changes.put(Expected::Any)?);
        }
        Ok(puts)
    }
}

fn usage(ended: &Ended, run: &Run) -> RunUsage {
    let Used { models, tools, context, .. } = ended.used.clone();
    RunUsage {
        id: format!("{}:{}", crate::clock::day(ended.at), run.id),
        owner: run.owner.clone(),
        session: run.session.clone(),
        run: run.id.clone(),
        prompt: tally::first_words(&run.prompt),
        ended: ended.at,
        duration_ms: ended.at.saturating_sub(run.started.unwrap_or(ended.at)),
        models,
        tools,
        context,
        place: tally::place(ended.at, &run.id),
    }
}

fn changes(ended: &Ended, run: &Run) -> RunChanges {
    RunChanges {
        id: run.id.clone(),
        owner: run.owner.clone(),
        session: run.session.clone(),
        prompt: tally::first_words(&run.prompt),
        at: ended.at,
        files: ended.used.files.clone(),
        cut: ended.used.more_files,
        place: tally::place(ended.at, &run.id),
    }
}
