//! Putting the files of a session back to how they were before one of its prompts.

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

/// What was put back, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    /// Whether nothing was done yet.
    pub dry_run: bool,
    /// The files, with their whole paths.
    pub files: Vec<String>,
    /// Lines that come back.
    pub(crate) insertions: u64,
    /// Lines that go.
    pub(crate) deletions: u64,
}

/// Which prompt, and whether it is only asked what would happen.
#[derive(Clone, Debug)]
pub(super) struct Rewind {
    pub(super) run: String,
    pub(super) dry_run: bool,
    pub(super) answer: mpsc::Sender<Fallible<Rewound>>,
}

impl Sessions {
    /// Puts files back to how they were before the prompt of a run.
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
            None => Err(ApiError::unavailable("stopping", "the session is about to end")),
        }
    }
}

impl Worker {
    pub(super) async fn rewind(&mut self, rewind: Rewind) {
        let done = match self.closed {
            Some(_) => Err(error::not_found("session", &self.session.id)),
            None => self.put_back(&rewind).await,
        };
        // Whoever asked may have gone; what was done is in the log.
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
            let told = event::rewound(&rewind.run, &rewound.files)?;
            self.writer.append(vec![told], Vec::new()).await?;
        }
        Ok(rewound)
    }
}

type Reply = ostler::proto::control::RewindFilesReply;

/// What the engine says, if it says yes.
fn reply(answered: Result<Result<Reply, Error>, tokio::time::error::Elapsed>) -> Fallible<Reply> {
    match answered {
        Ok(Ok(reply)) if reply.can_rewind => Ok(reply),
        Ok(Ok(reply)) => Err(cannot(reply.error.as_deref().unwrap_or("the engine refuses"))),
        Ok(Err(error)) => Err(cannot(&error.to_string())),
        Err(_) => Err(cannot("the engine does not answer")),
    }
}

fn cannot(why: &str) -> ApiError {
    let message = format!("the files cannot be put back: {why}");
    ApiError::conflict("cannot_rewind", message)
        .hint("only what file tools changed since this server keeps checkpoints can be put back")
}

/// The session is there, so what is wrong is the name of the run.
pub(super) fn no_run() -> ApiError {
    ApiError::invalid("before", "there is no such run in this session")
}

/// Files are not put back under the hands of an agent.
pub(super) fn busy() -> ApiError {
    ApiError::conflict("run_in_progress", "a run is under way in this session")
        .hint("wait for it, or cancel it")
}

/// What the engine calls the prompt of a run.
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
