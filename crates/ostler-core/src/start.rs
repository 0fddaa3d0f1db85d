//! Starting something for somebody who is not there: a prompt or a task, once for each key, within what is his.

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

/// What is started.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Start {
    /// A prompt, in a session of its own each time.
    Prompt { prompt: String, setup: Box<Setup> },
    /// A prompt in one and the same session.
    Session { prompt: String, session: String },
    /// A task: a skill with its parameters.
    Task { task: String },
}

/// What is needed for it.
#[derive(Clone)]
pub struct Starter {
    pub sessions: Arc<Sessions>,
    pub tasks: Arc<Tasks>,
    /// Sessions that are made for somebody count like those that they make.
    pub room: Arc<SessionRoom>,
}

/// For whom, and what for.
pub struct Occasion<'a> {
    pub owner: &'a str,
    /// What new sessions are called.
    pub title: &'a str,
    /// Whoever comes with the same key gets the same run.
    pub key: &'a str,
    /// What is said beside the prompt.
    pub(crate) more: Option<String>,
}

impl Starter {
    /// Refuses what could not be started. What it names belongs to the owner, whoever plans it.
    pub(crate) async fn validate(&self, owner: &str, start: &Start) -> Fallible<()> {
        let caller = Caller::on_behalf(owner);
        match start {
            Start::Prompt { prompt, .. } | Start::Session { prompt, .. }
                if prompt.trim().is_empty() =>
            {
                Err(ApiError::invalid("start.prompt", "a prompt says something"))
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

    /// Where the agent works.
    pub async fn folder(&self, owner: &str, start: &Start) -> Fallible<PathBuf> {
        let caller = Caller::on_behalf(owner);
        let folder = match start {
            // It was resolved when it was named; since then it may lead elsewhere.
            Start::Prompt { setup, .. } => {
                let found = setup.cwd.canonicalize().ok();
                found.filter(|found| *found == setup.cwd).ok_or_else(|| gone(&setup.cwd))?
            }
            Start::Session { session, .. } => self.sessions.find(&caller, session).await?.setup.cwd,
            Start::Task { task } => self.tasks.find(&caller, task).await?.project,
        };
        if folder.is_dir() { Ok(folder) } else { Err(gone(&folder)) }
    }

    /// Starts it, or finds that it was started.
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
