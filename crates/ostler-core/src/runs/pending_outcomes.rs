//! Runs whose end could not be written down, because the disk is full or the store fails. What came of them is in memory,
//! where whoever asks is told, until it can be written.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ostler_base::error::Fallible;
use ostler_store::{Error, Expected, Put};
use tokio::sync::mpsc;

use super::Sessions;
use super::day_usage::UncountedUsage;
use super::edits::RunChanges;
use super::meter::Used;
use super::worker::{Command, cancelled_outcome};
use crate::model::event;
use crate::model::run::{Attached, Outcome, Run, RunState, Session};
use crate::model::tally::{self, RunUsage};
use crate::records::Kept as _;

/// How long until it is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

/// How a run ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) run: String,
    pub(super) state: RunState,
    pub(super) outcome: Outcome,
    pub(super) at: u64,
    /// What it used.
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
    /// A run as it is, whatever its record says.
    pub fn as_it_is(&self, mut run: Run) -> Run {
        let pending_outcomes = self.pending_outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        // A record that says that the run is over is newer: an interrupted run may have been cancelled since.
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

    /// Runs that are over, although their records do not say so yet. None while the store can write.
    pub fn over_but_not_written(&self) -> Vec<String> {
        self.pending_outcomes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .keys()
            .cloned()
            .collect()
    }

    /// Writes down how runs of a session ended as soon as that works; then goes on with what was left to do.
    pub(super) fn keep_later(
        self: &Arc<Self>,
        session: Session,
        ended: Vec<Ended>,
        mut left: VecDeque<String>,
        commands: mpsc::Receiver<Command>,
    ) {
        // Before the worker is gone: a run must not look as if it worked when nobody works on it any more.
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
                // What has not begun when the server ends stays in line.
                if sessions.stopping.is_cancelled() {
                    return;
                }
                if let Err(error) = sessions.command(&session, || Command::Run(run.clone())).await {
                    tracing::error!(run, %error, "a run that waits could not begin");
                }
            }
        });
    }

    /// Tells whoever asks that these runs are over. Returns which ones.
    fn remember(&self, ended: Vec<Ended>) -> Vec<String> {
        let runs = ended.iter().map(|ended| ended.run.clone()).collect();
        let mut pending_outcomes =
            self.pending_outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        pending_outcomes.extend(ended.into_iter().map(|ended| (ended.run.clone(), ended)));
        runs
    }

    /// What a worker was told that it did not hear any more. Returns the runs that ended by that.
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
                // Nobody answers, which says enough. A cancel is kept as a request.
                _ => {}
            }
        }
        ended
    }

    /// Tries until it works, or until that is somebody else's business.
    async fn keep(&self, session: &Session, run: &str) {
        let known = || self.pending_outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ended) = known().get(run).cloned() else { return };
        let state = loop {
            match self.try_to_keep(session, &ended).await {
                Ok(state) => break state,
                // Another server has the session, and marks what it finds.
                Err(Error::Held { .. }) => break Some(ended.state),
                // It is marked when the server starts again.
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(run, %error, "the end of a run cannot be kept yet");
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

    /// What is left to do when the end of a run is kept.
    pub(super) async fn settle_end(&self, run: &str, state: RunState) {
        if state == RunState::Interrupted {
            if self.is_cancel_requested(run).await {
                return Box::pin(self.cancel_kept(run)).await;
            }
            // Not here: to resume is to start a worker, and this may be one.
            let _ = self.interrupted.0.send(run.to_owned());
            return;
        }
        self.approvals.withdraw_all(run).await;
        // Most have none, and what stays behind is only in the way.
        let _ = self.records.remove::<Attached>(run).await;
        self.forget_cancel(run).await;
    }

    /// Writes down at once how a run ended, if that is not done yet.
    pub(super) async fn keep_now(&self, session: &Session, run: &str) -> Fallible<()> {
        let ended =
            self.pending_outcomes.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned();
        match ended {
            Some(ended) => match self.try_to_keep(session, &ended).await {
                // Somebody has done so at the same moment.
                Err(Error::Conflict { .. }) => Ok(()),
                kept => Ok(kept.map(drop)?),
            },
            None => Ok(()),
        }
    }

    /// The state that the run has now; `None` if there is no such run.
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
        let told = event::state(&run).map_err(unread)?;
        let put = run.put(Expected::Version(version)).map_err(unread)?;
        let puts = self.end_puts(ended, &run).await.map_err(unread)?;
        let puts = [put].into_iter().chain(puts).collect();
        self.log_writers.write(&session.id, vec![told], puts).await?;
        self.changed(&run);
        Ok(Some(run.state))
    }

    /// What is written down beside the run itself when it is over: what it used, and that in its session's record.
    pub(super) async fn end_puts(&self, ended: &Ended, run: &Run) -> Fallible<Vec<Put>> {
        let spent = ended.used.spent();
        let session = self.session_put(&run.session, |session| {
            session.touch(ended.at);
            session.tally.spent.add(&spent);
        });
        let mut puts: Vec<Put> = session.await?.into_iter().collect();
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
