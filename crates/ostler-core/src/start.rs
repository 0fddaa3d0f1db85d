//! Starts a prompt or a task for a user who is not present, once for each key, with that user's permissions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_base::error::{ApiError, Fallible};
use ostler_base::ids;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::run::{Run, Setup};
use crate::runs::{NewRun, Sessions};
use crate::session_room::SessionRoom;
use crate::tasks::{Tasks, joined};

/// What to start.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Start {
    /// A prompt, in a new session each time.
    Prompt { prompt: String, setup: Box<Setup> },
    /// A prompt in an existing session.
    Session { prompt: String, session: String },
    /// A task: a skill with its parameters.
    Task { task: String },
}

/// Starts prompts and tasks.
#[derive(Clone)]
pub struct Starter {
    pub sessions: Arc<Sessions>,
    pub tasks: Arc<Tasks>,
    /// Sessions that are created for a user count like those that the user creates.
    pub room: Arc<SessionRoom>,
}

/// For which user, and why.
pub struct Occasion<'a> {
    pub owner: &'a str,
    /// The title of new sessions.
    pub title: &'a str,
    /// Calls with the same key get the same run.
    pub key: &'a str,
    /// Text that is added to the prompt.
    pub(crate) more: Option<String>,
}

impl Starter {
    /// Refuses a start that could not succeed. Everything it names must belong to the owner, also if another user plans
    /// it.
    pub(crate) async fn validate(&self, owner: &str, start: &Start) -> Fallible<()> {
        let caller = Caller::on_behalf(owner);
        match start {
            Start::Prompt { prompt, .. } | Start::Session { prompt, .. }
                if prompt.trim().is_empty() =>
            {
                Err(ApiError::invalid("start.prompt", "the prompt is empty"))
            }
            Start::Prompt { setup, .. } => self.sessions.check_setup(setup),
            Start::Session { session, .. } => {
                let found = self.sessions.find(&caller, session).await;
                found.map(drop).map_err(|error| error.field("start.session"))
            }
            Start::Task { task } => {
                let found = self.tasks.find(&caller, task).await;
                found.map(drop).map_err(|error| error.field("start.task"))
            }
        }
    }

    /// The folder in which the agent works.
    pub async fn folder(&self, owner: &str, start: &Start) -> Fallible<PathBuf> {
        let caller = Caller::on_behalf(owner);
        let folder = match start {
            // It was resolved when the start was created; since then it may have been redirected.
            Start::Prompt { setup, .. } => {
                let found = setup.cwd.canonicalize().ok();
                found.filter(|found| *found == setup.cwd).ok_or_else(|| gone(&setup.cwd))?
            }
            Start::Session { session, .. } => self.sessions.find(&caller, session).await?.setup.cwd,
            Start::Task { task } => self.tasks.find(&caller, task).await?.project,
        };
        if folder.is_dir() { Ok(folder) } else { Err(gone(&folder)) }
    }

    /// Starts a run, or returns the run that was started with the same key.
    pub async fn start(&self, start: &Start, occasion: Occasion<'_>) -> Fallible<Run> {
        let Occasion { owner, title, key, more } = occasion;
        let caller = Caller::on_behalf(owner);
        let (session, prompt) = match start {
            Start::Task { task } => {
                let task =
                    self.tasks.execute_unattended(&caller, task, key, more.as_deref()).await?;
                let run = task.execution.map(|execution| execution.run).unwrap_or_default();
                return self.sessions.find_run(&caller, &run).await;
            }
            Start::Session { session, prompt } => {
                (self.sessions.find(&caller, session).await?, prompt)
            }
            Start::Prompt { prompt, setup } => {
                if self.sessions.keyed(owner, key).await?.is_none() {
                    self.room.take(owner).await?;
                }
                (self.sessions.by_key(owner, key, title, (**setup).clone()).await?, prompt)
            }
        };
        let prompt = joined(prompt, more.as_deref());
        let id = Some(ids::of("run", key));
        let new = NewRun { id, unattended: true, ..NewRun::text(prompt) };
        self.sessions.submit(&session, new).await
    }
}

fn gone(folder: &Path) -> ApiError {
    ApiError::conflict("folder_gone", format!("the folder {} is gone", folder.display()))
}
