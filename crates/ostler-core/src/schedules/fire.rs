//! One firing of a schedule: whether it starts a run, which one, and the result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_base::error::{ApiError, Fallible};
use ostler_process::Confine;

use super::Schedules;
use super::check::CheckOutcome;
use super::record::{Check, Firing, FiringState, Schedule, ScheduleState};
use crate::config::SandboxChoice;
use crate::confine;
use crate::model::run::{Failure, Run, RunState};
use crate::start::Occasion;

/// The delay before the first retry, in milliseconds; it doubles with each retry.
const FIRST_WAIT: u64 = 5_000;

/// Why nothing was started.
enum Refusal {
    /// Not an error: no start is wanted now.
    Skipped(String),
    /// A retry may succeed.
    Passing(String),
    /// A retry would fail too.
    Final(String),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let text = error.detail().message.clone();
        if error.is_passing() { Self::Passing(text) } else { Self::Final(text) }
    }
}

impl Schedules {
    /// Starts the run of a firing. Returns the time of a retry.
    pub(super) async fn fire(&self, id: &str) -> Fallible<Option<u64>> {
        let Some((firing, _)) = self.records.find::<Firing>(id).await? else { return Ok(None) };
        let Some((schedule, _)) = self.records.find::<Schedule>(&firing.schedule).await? else {
            return Ok(None);
        };
        match firing.state {
            FiringState::Due | FiringState::Retrying => {}
            _ => return Ok(None),
        }
        if self.users.role(&schedule.owner).is_none() {
            self.stop_for_good(&schedule).await?;
            let gone = Refusal::Final(format!("the user {} no longer exists", schedule.owner));
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
        let Schedule { owner, start, .. } = schedule;
        let folder = self.starter.folder(owner, start).await?;
        let said = match &schedule.check {
            // The check runs once; its approval also counts for retries.
            Some(_) if firing.check_said.is_some() => firing.check_said.clone(),
            Some(check) => {
                let about = [
                    ("OSTLER_SCHEDULE", schedule.id.clone()),
                    ("OSTLER_PLANNED", firing.planned.to_string()),
                ];
                // Resolved again each time: the path may lead into a folder of an agent by now.
                if let Err(error) = check.resolve(&self.writable().await?) {
                    return Err(Refusal::Final(error.detail().message.clone()));
                }
                let sandbox = match self.sandbox_of_check(check, &folder).await {
                    Ok(sandbox) => sandbox,
                    Err(why) => {
                        return Err(Refusal::Skipped(format!("the check did not run: {why}")));
                    }
                };
                match check.run(&folder, &about, sandbox.as_deref()).await {
                    CheckOutcome::Wake(output) => Some(self.remember(firing, output).await?),
                    CheckOutcome::Sleep(why) => return Err(Refusal::Skipped(why)),
                }
            }
            None => None,
        };
        let is_told = schedule.check.as_ref().is_some_and(|check| check.tell);
        let more = said
            .filter(|said| is_told && !said.trim().is_empty())
            .map(|said| format!("A command that ran before this printed:\n\n{}", said.trim_end()));
        // The same attempt has the same key, so it is made once.
        let key = format!("{}/{}", firing.id, firing.retries);
        let occasion = Occasion { owner, title: &schedule.name, key: &key, more };
        Ok(self.starter.start(start, occasion).await?)
    }

    /// The sandbox of a check, where this server has one: it reads files that agents write, so it must not be able to read
    /// what they must not see.
    async fn sandbox_of_check(
        &self,
        check: &Check,
        folder: &Path,
    ) -> Result<Option<Arc<dyn Confine>>, String> {
        let config = Arc::clone(&self.sessions.config);
        if config.sandbox != SandboxChoice::Required {
            return Ok(None);
        }
        let program = check.command.first().map(PathBuf::from);
        let folder = folder.to_owned();
        let build = move || confine::sandbox::around_check(&folder, program, &config).map(Some);
        tokio::task::spawn_blocking(build).await.map_err(|error| error.to_string())?
    }

    async fn remember(&self, firing: &Firing, output: String) -> Fallible<String> {
        let remembered = self.records.update::<Firing, ()>(&firing.id, |firing| {
            firing.check_said = Some(output.clone());
            Ok(())
        });
        remembered.await.map(|_| output)
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

    /// Stores the time of the next attempt, or that the firing is given up.
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
            tracing::error!(firing = id, why, "a start of a schedule is given up");
        }
        Ok(firing.retry_at)
    }

    /// Waits for the end of a firing's run, which may have ended already.
    pub(super) async fn follow(&self, firing: &Firing) -> Fallible<()> {
        let Some(run) = &firing.run else { return Ok(()) };
        self.at_work.lock().insert(run.clone(), firing.id.clone());
        match self.records.find::<Run>(run).await? {
            Some((run, _)) if run.state.is_over() => self.settle(&firing.id, &run).await,
            _ => Ok(()),
        }
    }

    /// Stores the result of a firing's run.
    pub(super) async fn settle(&self, id: &str, run: &Run) -> Fallible<()> {
        self.at_work.lock().remove(&run.id);
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

    /// Stops a schedule whose user was removed.
    async fn stop_for_good(&self, schedule: &Schedule) -> Fallible<()> {
        let stopped = self.records.update::<Schedule, ()>(&schedule.id, |schedule| {
            schedule.state = ScheduleState::Paused;
            Ok(())
        });
        let (schedule, ()) = stopped.await?;
        self.set_timer(&schedule).await
    }
}

/// Whether a retry may succeed: the model or the engine could not be reached. If the agent itself failed, it would fail
/// again, and its time and money are spent.
fn is_passing(failure: &Failure) -> bool {
    matches!(
        failure.code.as_str(),
        "api" | "engine" | "no_engine" | "engine_lost" | "held_elsewhere"
    )
}
