//! Runs whose end could not be written down, because the disk is full or the store fails. What came of them is in memory,
//! where whoever asks is told, until it can be written.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ostler_store::{Error, Expected, Put};
use tokio::sync::mpsc;

use super::edits::RunChanges;
use super::meter::Used;
use super::record::{Attached, Outcome, Run, RunState, Session};
use super::tally::{self, RunUsage};
use super::worker::{Command, cancelled_outcome};
use super::{Hub, event};
use crate::fault::Fallible;
use crate::records::Kept as _;

/// How long until it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

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

    /// Writes down how runs of a session ended as soon as that works; then goes on with what was left to do.
    pub(super) fn keep_later(
        self: &Arc<Self>,
        session: Session,
        mut ended: Vec<Ended>,
        mut left: VecDeque<String>,
        commands: mpsc::Receiver<Command>,
    ) {
        self.leave(commands, &mut ended, &mut left);
        let mut unkept = self.unkept.lock().unwrap_or_else(PoisonError::into_inner);
        unkept.extend(ended.iter().map(|ended| (ended.run.clone(), ended.clone())));
        drop(unkept);
        let hub = Arc::clone(self);
        self.tracker.spawn(async move {
            for ended in ended {
                hub.keep(&session, &ended).await;
            }
            for run in left {
                if let Err(error) = hub.command(&session, || Command::Run(run.clone())).await {
                    tracing::error!(run, %error, "a run that waits could not begin");
                }
            }
        });
    }

    /// What a worker was told that it did not hear any more.
    fn leave(
        &self,
        mut commands: mpsc::Receiver<Command>,
        ended: &mut Vec<Ended>,
        left: &mut VecDeque<String>,
    ) {
        self.gone_closed(&mut commands);
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::Run(run) => left.push_back(run),
                Command::Cancel(run) if left.contains(&run) => {
                    left.retain(|queued| *queued != run);
                    let (state, outcome) = (RunState::Cancelled, cancelled_outcome());
                    let (at, used) = (self.clock.now(), Used::default());
                    ended.push(Ended { run, state, outcome, at, used });
                }
                // Nobody answers, which says enough.
                _ => {}
            }
        }
    }

    /// Tries until it works, or until that is somebody else's business.
    async fn keep(&self, session: &Session, ended: &Ended) {
        while let Err(error) = self.try_to_keep(session, ended).await {
            match error {
                // Another server has the session, and marks what it finds.
                Error::Held { .. } => break,
                // Nothing can be written before a restart, which marks it.
                Error::Broken(_) | Error::Closed => return,
                error => {
                    tracing::warn!(run = ended.run, %error, "the end of a run cannot be kept yet")
                }
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                // It is marked when the server starts again.
                () = self.stopping.cancelled() => return,
            }
        }
        self.unkept.lock().unwrap_or_else(PoisonError::into_inner).remove(&ended.run);
        self.approvals.withdraw_all(&ended.run).await;
        // Most have none, and what stays behind is only in the way.
        let _ = self.records.remove::<Attached>(&ended.run).await;
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
            puts.push(usage(ended, run).put(Expected::Any)?);
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
