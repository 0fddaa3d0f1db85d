//! Runs whose end could not be written down, because the disk is full or the store fails. What came of them is in memory,
//! where whoever asks is told, until it can be written.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ostler_store::{Error, Expected, Put};
use tokio::sync::mpsc;

use super::day_usage::UncountedUsage;
use super::edits::RunChanges;
use super::meter::Used;
use super::record::{Attached, Outcome, Run, RunState, Session};
use super::tally::{self, RunUsage};
use super::worker::{Command, cancelled_outcome};
use super::{Hub, event};
use crate::fault::Fallible;
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

impl Hub {
    /// A run as it is, whatever its record says.
    pub(crate) fn as_it_is(&self, mut run: Run) -> Run {
        let unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = unkept.get(&run.id) {
            ended.note(&mut run);
        }
        run
    }

    /// Runs that are over, although their records do not say so yet. None while the store can write.
    pub(crate) fn over_but_not_written(&self) -> Vec<String> {
        self.unkept.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// A run that was interrupted, which is not written down yet, is cancelled instead. `false` if it is none of those.
    pub(super) fn cancel_unkept(&self, run: &str) -> bool {
        let mut unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ended) = unkept.get_mut(run).filter(|it| it.state == RunState::Interrupted) else {
            return false;
        };
        (ended.state, ended.outcome) = (RunState::Cancelled, cancelled_outcome());
        true
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
        let hub = Arc::clone(self);
        self.tracker.spawn(async move {
            for run in runs {
                hub.keep(&session, &run).await;
            }
            for run in left {
                // What has not begun when the server ends stays in line.
                if hub.stopping.is_cancelled() {
                    return;
                }
                if let Err(error) = hub.command(&session, || Command::Run(run.clone())).await {
                    tracing::error!(run, %error, "a run that waits could not begin");
                }
            }
        });
    }

    /// Tells whoever asks that these runs are over. Returns which ones.
    fn remember(&self, ended: Vec<Ended>) -> Vec<String> {
        let runs = ended.iter().map(|ended| ended.run.clone()).collect();
        let mut unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        unkept.extend(ended.into_iter().map(|ended| (ended.run.clone(), ended)));
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
                // Whoever wanted it to end gets that, and not a run to resume.
                Command::Cancel(run) => _ = self.cancel_unkept(&run),
                // Nobody answers, which says enough.
                _ => {}
            }
        }
        ended
    }

    /// Tries until it works, or until that is somebody else's business.
    async fn keep(&self, session: &Session, run: &str) {
        let known = || self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut ended) = known().get(run).cloned() else { return };
        while let Err(error) = self.try_to_keep(session, &ended).await {
            match error {
                // Another server has the session, and marks what it finds.
                Error::Held { .. } => break,
                // It is marked when the server starts again.
                Error::Closed => return,
                error => {
                    tracing::warn!(run, %error, "the end of a run cannot be kept yet");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                // It is marked when the server starts again.
                () = self.stopping.cancelled() => return,
            }
            // Somebody may have cancelled it meanwhile.
            ended = known().get(run).cloned().unwrap_or(ended);
        }
        let last = known().remove(run);
        self.settle_end(run, ended.state).await;
        if ended.state == RunState::Interrupted
            && last.is_some_and(|last| last.state == RunState::Cancelled)
        {
            // It was cancelled while the interruption was being written.
            self.cancel_kept(run).await;
        }
    }

    async fn cancel_kept(&self, run: &str) {
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

    /// What is left to do when the end of a run is kept.
    pub(super) async fn settle_end(&self, run: &str, state: RunState) {
        if state == RunState::Interrupted {
            // Not here: to resume is to start a worker, and this may be one.
            let _ = self.interrupted.0.send(run.to_owned());
            return;
        }
        self.approvals.withdraw_all(run).await;
        // Most have none, and what stays behind is only in the way.
        let _ = self.records.remove::<Attached>(run).await;
    }

    /// Writes down at once how a run ended, if that is not done yet.
    pub(super) async fn keep_now(&self, session: &Session, run: &str) -> Fallible<()> {
        let ended = self.unkept.lock().unwrap_or_else(PoisonError::into_inner).get(run).cloned();
        match ended {
            Some(ended) => match self.try_to_keep(session, &ended).await {
                // Somebody has done so at the same moment.
                Err(Error::Conflict { .. }) => Ok(()),
                kept => Ok(kept?),
            },
            None => Ok(()),
        }
    }

    async fn try_to_keep(&self, session: &Session, ended: &Ended) -> Result<(), Error> {
        let unread = |error: crate::fault::ApiError| Error::Failed {
            doing: format!("reading {}", ended.run),
            why: error.to_string(),
        };
        let Some((mut run, version)) =
            self.records.find::<Run>(&ended.run).await.map_err(unread)?
        else {
            return Ok(());
        };
        if run.state.is_over() {
            return Ok(());
        }
        ended.note(&mut run);
        let told = event::state(&run).map_err(unread)?;
        let put = run.put(Expected::Version(version)).map_err(unread)?;
        let puts = self.end_puts(ended, &run).await.map_err(unread)?;
        let puts = [put].into_iter().chain(puts).collect();
        self.scribe.write(&session.id, vec![told], puts).await?;
        self.changed(&run);
        Ok(())
    }

    /// What is written down beside the run itself when it is over: what it used, and that in its session's record.
    pub(super) async fn end_puts(&self, ended: &Ended, run: &Run) -> Fallible<Vec<Put>> {
        let spent = ended.used.spent();
        let session = self.session_put(&run.session, |session| {
            session.touch(ended.at);
            session.tally.spent.add(&spent);
        });
        let mut puts: Vec<Put> = session.await?.into_iter().collect();
        if ended.used != Used::default() {
            let usage = usage(ended, run);
            puts.push(UncountedUsage::from(&usage).put(Expected::Any)?);
            puts.push(usage.put(Expected::Any)?);
        }
        if !ended.used.files.is_empty() {
            puts.push(changes(ended, run).put(Expected::Any)?);
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
    }
}
