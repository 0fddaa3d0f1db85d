//! Restores the files of a session to their state before one of its prompts.

use std::time::Duration;

use ostler::Error;
use ostler::proto::Uuid;
use ostler_base::error::{self, ApiError, Fallible};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use super::Sessions;
use super::worker::{Command, Worker};
use crate::model::event;
use crate::model::run::{Run, Session};

/// How long an engine may take for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// The restored files, or those that would be restored.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The files, with absolute paths.
    pub files: Vec<String>,
    /// Lines that are added.
    pub(crate) insertions: u64,
    /// Lines that are removed.
    pub(crate) deletions: u64,
}

/// Which prompt, and whether it is a dry run.
#[derive(Clone, Debug)]
pub(super) struct Rewind {
    pub(super) run: String,
    pub(super) dry_run: bool,
    pub(super) answer: mpsc::Sender<Fallible<Rewound>>,
}

impl Sessions {
    /// Restores files to their state before the prompt of a run.
    pub async fn rewind(
        self: &std::sync::Arc<Self>,
        session: &Session,
        run: &str,
        dry_run: bool,
    ) -> Fallible<Rewound> {
        match self.records.find::<Run>(run).await? {
            Some((found, _)) if found.session == session.id => {}
            _ => return Err(no_run()),
        }
        if self.live_run(&session.id).await?.is_some() {
            return Err(busy());
        }
        let (answer, mut answered) = mpsc::channel(1);
        let rewind = Rewind { run: run.to_owned(), dry_run, answer };
        self.command(session, || Command::Rewind(rewind.clone())).await?;
        drop(rewind);
        match answered.recv().await {
            Some(answer) => answer,
            None => Err(ApiError::unavailable("stopping", "the session is ending")),
        }
    }
}

impl Worker {
    pub(super) async fn rewind(&mut self, rewind: Rewind) {
        let done = match self.closed {
            Some(_) => Err(error::not_found("session", &self.session.id)),
            None => self.put_back(&rewind).await,
        };
        // The caller may have gone; the log has the result.
        let _ = rewind.answer.try_send(done);
    }

    async fn put_back(&mut self, rewind: &Rewind) -> Fallible<Rewound> {
        if self.session.engine_session.is_none() {
            return Err(cannot("nothing was done in this session yet"));
        }
        let handle = self.connect().await?.client.handle();
        let prompt = prompt_name(&rewind.run);
        let asking = tokio::time::timeout(PATIENCE, handle.rewind_preview(prompt.clone()));
        let would = reply(asking.await)?;
        if !rewind.dry_run {
            let doing = tokio::time::timeout(PATIENCE, handle.rewind_files(prompt));
            reply(doing.await)?;
        }
        let rewound = Rewound {
            dry_run: rewind.dry_run,
            files: would.files_changed.unwrap_or_default(),
            insertions: would.insertions.unwrap_or_default(),
            deletions: would.deletions.unwrap_or_default(),
        };
        if !rewind.dry_run {
            let event = event::rewound(&rewind.run, &rewound.files)?;
            self.writer.append(vec![event], Vec::new()).await?;
        }
        Ok(rewound)
    }
}

type Reply = ostler::proto::control::RewindFilesReply;

/// The reply of the engine, if it succeeded.
fn reply(answered: Result<Result<Reply, Error>, tokio::time::error::Elapsed>) -> Fallible<Reply> {
    match answered {
        Ok(Ok(reply)) if reply.can_rewind => Ok(reply),
        Ok(Ok(reply)) => Err(cannot(reply.error.as_deref().unwrap_or("the engine refuses"))),
        Ok(Err(error)) => Err(cannot(&error.to_string())),
        Err(_) => Err(cannot("the engine does not answer")),
    }
}

fn cannot(why: &str) -> ApiError {
    let message = format!("the files cannot be restored: {why}");
    ApiError::conflict("cannot_rewind", message)
        .hint("only changes by file tools, made since this server has checkpoints, can be restored")
}

/// The session exists, so the id of the run is wrong.
pub(super) fn no_run() -> ApiError {
    ApiError::invalid("before", "there is no such run in this session")
}

/// Files are not restored while an agent works.
pub(super) fn busy() -> ApiError {
    ApiError::conflict("run_in_progress", "a run is in progress in this session")
        .hint("wait for it, or cancel it")
}

/// The engine's id of the prompt of a run.
pub(super) fn prompt_name(run: &str) -> Uuid {
    let digits = run.rsplit('_').next().unwrap_or_default();
    let parsed = uuid::Uuid::try_parse(digits).ok();
    let name = parsed.unwrap_or_else(|| {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(run.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    });
    Uuid::from(name.hyphenated().to_string())
}
