//! After a crash: what was at work is marked, what waited goes on.

use std::sync::Arc;

use ostler_store::{Error, Expected, Filter};

use super::record::{Attached, Failure, Outcome, Run, RunState, Session};
use super::worker::Command;
use super::{Hub, NewRun, event};
use crate::fault::{ApiError, Fallible};
use crate::ids;
use crate::records::Kept as _;
use crate::security::users::Caller;

/// What an engine is told that takes up where another one was cut off.
const GO_ON: &str = "You were interrupted. Go on where you stopped.";

impl Hub {
    /// Looks at all runs that are not over. Those of an earlier server were interrupted; those that waited wait again.
    /// Runs that another server works on are left alone.
    pub(crate) async fn recover(self: &Arc<Self>) -> Fallible<()> {
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

    async fn in_state(&self, word: &str) -> Fallible<Vec<Run>> {
        let field = Some(("state".to_owned(), word.to_owned()));
        let mut runs: Vec<Run> = self.records.all(Filter { field, ..Filter::default() }).await?;
        runs.sort_by_key(|run| run.created);
        Ok(runs)
    }

    async fn mark_interrupted(&self, run: Run) -> Fallible<()> {
        let Some((mut run, version)) = self.records.find::<Run>(&run.id).await? else {
            return Ok(());
        };
        run.state = RunState::Interrupted;
        run.ended = Some(self.clock.now());
        let failure = Failure::new(
            "interrupted",
            "the server ended while this run was at work; it can be resumed",
        );
        run.outcome = Some(Outcome { error: Some(failure), ..Outcome::default() });
        let put = run.put(Expected::Version(version))?;
        match self.scribe.write(&run.session, vec![event::state(&run)?], vec![put]).await {
            Ok(_) => {
                self.changed(&run);
                Ok(())
            }
            // Another server is at it.
            Err(Error::Held { .. } | Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes up a run that was interrupted, in a run of its own.
    pub(crate) async fn resume(self: &Arc<Self>, caller: &Caller, id: &str) -> Fallible<Run> {
        let run = self.find_run(caller, id).await?;
        if run.state != RunState::Interrupted {
            let message =
                format!("only an interrupted run can be resumed, and this one is {:?}", run.state);
            return Err(ApiError::conflict("not_interrupted", message.to_lowercase()));
        }
        let session = self.find(caller, &run.session).await?;
        let id = ids::of("run", &format!("resume {}", run.id));
        if self.records.find::<Run>(&id).await?.is_some() {
            return Err(already_resumed(&id));
        }
        let unattended = run.unattended;
        let new = match session.engine_session {
            Some(_) => NewRun::text(GO_ON),
            // An engine that never said anything has nothing to go on with.
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
