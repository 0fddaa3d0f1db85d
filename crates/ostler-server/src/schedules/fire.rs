//! One firing: whether it starts something, what, and what came of it.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::check::Said;
use super::record::{Firing, FiringState, Schedule, ScheduleState, Start};
use super::{Schedules, on_behalf};
use crate::fault::{ApiError, Fallible};
use crate::ids;
use crate::runs::NewRun;
use crate::runs::record::{Failure, Run, RunState};

/// How long is waited before the first time that something is tried again; then twice as long each time.
const FIRST_WAIT: u64 = 5_000;

/// Why nothing was started.
enum Refusal {
    /// There is nothing wrong: it is not wanted now.
    Skipped(String),
    /// It may be better in a while.
    Passing(String),
    /// It will not be better.
    Final(String),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let text = error.detail().message.clone();
        if error.is_passing() { Self::Passing(text) } else { Self::Final(text) }
    }
}

impl Schedules {
    /// Starts what is to be started. Says when it is to be tried again.
    pub(super) async fn fire(&self, id: &str) -> Fallible<Option<u64>> {
        let Some((firing, _)) = self.records.find::<Firing>(id).await? else { return Ok(None) };
        let Some((schedule, _)) = self.records.find::<Schedule>(&firing.schedule).await? else {
            return Ok(None);
        };
        match firing.state {
            FiringState::Due | FiringState::Retrying => {}
            _ => return Ok(None),
        }
        if !self.users.knows(&schedule.owner) {
            self.stop_for_good(&schedule).await?;
            let gone = Refusal::Final(format!("there is no user {} any more", schedule.owner));
            return self.refused(&schedule, firing, gone).await;
        }
        match self.start(&schedule, &firing).await {
            Ok(run) => {
                let now = self.clock.now();
                let (started, ()) = self
                    .records
                    .update::<Firing, ()>(id, |firing| {
                        firing.state = FiringState::Started;
                        firing.started.get_or_insert(now);
                        firing.session = Some(run.session.clone());
                        firing.run = Some(run.id.clone());
                        firing.retry_at = None;
                        Ok(())
                    })
                    .await?;
                self.follow(&started).await?;
                Ok(None)
            }
            Err(refusal) => self.refused(&schedule, firing, refusal).await,
        }
    }

    async fn start(&self, schedule: &Schedule, firing: &Firing) -> Result<Run, Refusal> {
        let folder = self.folder(schedule).await?;
        let told = match &schedule.check {
            // Once it has said yes, that counts for further tries too.
            Some(check) if firing.retries == 0 => {
                let about = [
                    ("OSTLER_SCHEDULE", schedule.id.clone()),
                    ("OSTLER_PLANNED", firing.planned.to_string()),
                ];
                match check.run(&folder, &about).await {
                    Said::Wake(output) => Some(output).filter(|_| check.tell),
                    Said::Sleep(why) => return Err(Refusal::Skipped(why)),
                }
            }
            _ => None,
        };
        // The same try has the same name, so it is made once.
        let key = format!("{}/{}", firing.id, firing.retries);
        let caller = on_behalf(schedule);
        let (session, prompt) = match &schedule.start {
            Start::Task { task } => {
                let task =
                    self.tasks.execute_as(&caller, task, Some(&key), told.as_deref()).await?;
                let run = task.execution.map(|execution| execution.run).unwrap_or_default();
                return Ok(self.hub.find_run(&caller, &run).await?);
            }
            Start::Session { session, prompt } => (self.hub.find(&caller, session).await?, prompt),
            Start::Prompt { prompt, setup } => {
                let owner = &schedule.owner;
                let made = self.hub.by_key(owner, &key, &schedule.name, (**setup).clone());
                (made.await?, prompt)
            }
        };
        let new = NewRun {
            prompt: with_output(prompt, told.as_deref()),
            id: Some(ids::of("run", &key)),
            ..NewRun::default()
        };
        Ok(self.hub.submit(&session, new).await?)
    }

    /// Where the agent, and before it the check, works.
    async fn folder(&self, schedule: &Schedule) -> Result<PathBuf, Refusal> {
        let caller = on_behalf(schedule);
        let folder = match &schedule.start {
            // It was resolved when it was named; since then it may lead elsewhere.
            Start::Prompt { setup, .. } => {
                let found = setup.cwd.canonicalize().ok();
                found.filter(|found| *found == setup.cwd).ok_or_else(|| gone(&setup.cwd))?
            }
            Start::Session { session, .. } => self.hub.find(&caller, session).await?.setup.cwd,
            Start::Task { task } => self.tasks.find(&caller, task).await?.project,
        };
        if folder.is_dir() { Ok(folder) } else { Err(gone(&folder)) }
    }

    async fn refused(
        &self,
        schedule: &Schedule,
        firing: Firing,
        refusal: Refusal,
    ) -> Fallible<Option<u64>> {
        let (state, note) = match refusal {
            Refusal::Skipped(why) => (FiringState::Skipped, why),
            Refusal::Final(why) => (FiringState::Failed, why),
            Refusal::Passing(why) => {
                return self.try_again(schedule.retries, &firing.id, why).await;
            }
        };
        tracing::warn!(
            schedule = schedule.id,
            firing = firing.id,
            note,
            "a schedule started nothing"
        );
        let now = self.clock.now();
        let noted = self.records.update::<Firing, ()>(&firing.id, |firing| {
            (firing.state, firing.ended) = (state, Some(now));
            firing.note = Some(note.clone());
            Ok(())
        });
        noted.await?;
        Ok(None)
    }

    /// Notes when it is tried again, or that it is given up.
    async fn try_again(&self, most: u32, id: &str, why: String) -> Fallible<Option<u64>> {
        let now = self.clock.now();
        let (firing, ()) = self
            .records
            .update::<Firing, ()>(id, |firing| {
                firing.note = Some(why.clone());
                if firing.retries >= most {
                    (firing.state, firing.ended) = (FiringState::GivenUp, Some(now));
                    firing.retry_at = None;
                } else {
                    let wait = FIRST_WAIT << firing.retries.min(16);
                    (firing.state, firing.retry_at) = (FiringState::Retrying, Some(now + wait));
                    firing.retries += 1;
                }
                Ok(())
            })
            .await?;
        if firing.state == FiringState::GivenUp {
            tracing::error!(firing = id, why, "a schedule is given up this time");
        }
        Ok(firing.retry_at)
    }

    /// Waits for the end of a firing's run, which may have come.
    pub(super) async fn follow(&self, firing: &Firing) -> Fallible<()> {
        let Some(run) = &firing.run else { return Ok(()) };
        self.at_work
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(run.clone(), firing.id.clone());
        match self.records.find::<Run>(run).await? {
            Some((run, _)) if run.state.is_over() => self.settle(&firing.id, &run).await,
            _ => Ok(()),
        }
    }

    /// The run of a firing is over.
    pub(super) async fn settle(&self, id: &str, run: &Run) -> Fallible<()> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).remove(&run.id);
        let Some((firing, _)) = self.records.find::<Firing>(id).await? else { return Ok(()) };
        if firing.state != FiringState::Started || firing.run.as_ref() != Some(&run.id) {
            return Ok(());
        }
        let failure = run.outcome.as_ref().and_then(|outcome| outcome.error.as_ref());
        if run.state == RunState::Failed
            && let Some(failure) = failure
            && is_passing(failure)
            && let Some((schedule, _)) = self.records.find::<Schedule>(&firing.schedule).await?
        {
            let again = self.try_again(schedule.retries, id, failure.message.clone()).await?;
            if let Some(at) = again {
                self.wake_at(&firing, at).await?;
            }
            return Ok(());
        }
        let state = match run.state {
            RunState::Completed => FiringState::Completed,
            RunState::Cancelled => FiringState::Cancelled,
            RunState::Interrupted => FiringState::Interrupted,
            _ => FiringState::Failed,
        };
        let note = failure.map(|failure| failure.message.clone());
        let settled = self.records.update::<Firing, ()>(id, |firing| {
            firing.state = state;
            firing.ended = run.ended;
            firing.note.clone_from(&note);
            Ok(())
        });
        settled.await.map(drop)
    }

    /// Nobody is there for whom it could be followed.
    async fn stop_for_good(&self, schedule: &Schedule) -> Fallible<()> {
        let stopped = self.records.update::<Schedule, ()>(&schedule.id, |schedule| {
            schedule.state = ScheduleState::Paused;
            Ok(())
        });
        let (schedule, ()) = stopped.await?;
        self.set_timer(&schedule).await
    }
}

fn gone(folder: &Path) -> Refusal {
    Refusal::Final(format!("the folder {} is gone", folder.display()))
}

/// Whether a run that failed so may do better in a while: the model or the engine could not be reached. What the agent
/// itself did not manage it does not manage a second time, and its time and money are spent.
fn is_passing(failure: &Failure) -> bool {
    matches!(
        failure.code.as_str(),
        "api" | "engine" | "no_engine" | "engine_lost" | "held_elsewhere"
    )
}

/// The prompt, and what a check has printed.
pub(crate) fn with_output(prompt: &str, told: Option<&str>) -> String {
    match told.map(str::trim_end) {
        Some(told) if !told.is_empty() => {
            format!("{prompt}\n\nThe command that was run before this printed:\n\n{told}")
        }
        _ => prompt.to_owned(),
    }
}
