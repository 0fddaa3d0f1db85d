//! Prompts with an idempotency key: a prompt that is sent several times is answered once.
//!
//! A key belongs to a session and is stored as long as the session. The id of the run is derived from the key, so a
//! server that stopped in between creates the same run when the prompt is sent again.

use std::sync::Arc;

use ostler_base::error::{self, ApiError, Fallible};
use ostler_base::ids;
use ostler_store::Filter;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{NewRun, Sessions};
use crate::model::run::{Run, Session};
use crate::records::kept;

/// The length limit of a key, in characters.
const LONGEST: usize = 200;

/// How long it may take to send a prompt to an active run, in milliseconds.
const PUSHED_WITHIN_MS: u64 = 30_000;

/// A key that was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PromptKey {
    id: String,
    owner: String,
    session: String,
    /// The digest of the prompt and its options.
    digest: String,
    /// The run that answers it.
    run: String,
    /// Milliseconds since 1970.
    created: u64,
}

kept!(PromptKey, "promptKey");

impl Sessions {
    /// Submits a prompt, unless one with the same key was submitted.
    pub(super) async fn submit_once(
        self: &Arc<Self>,
        session: &Session,
        key: &str,
        new: NewRun,
    ) -> Fallible<Run> {
        check(key)?;
        // A session that was deleted and created again with the same id has its own keys.
        let name = format!("{} {} {key}", session.id, session.created);
        let used = PromptKey {
            id: ids::of("key", &name),
            owner: session.owner.clone(),
            session: session.id.clone(),
            digest: digest(&new),
            run: ids::of("run", &format!("key {name}")),
            created: self.clock.now(),
        };
        if let Some((known, _)) = self.records.find::<PromptKey>(&used.id).await? {
            return self.answered(known, &used, session, new).await;
        }
        match self.records.create(&used).await {
            Ok(()) => self.submit_as(session, used, new).await,
            // Another request with the key arrived at the same moment.
            Err(error) if error.detail().code == "changed" => {
                let known = self.records.find::<PromptKey>(&used.id).await?;
                let (known, _) = known.ok_or_else(|| error::not_found("key", key))?;
                self.answered(known, &used, session, new).await
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes the keys of a session.
    pub(super) async fn forget_keys(&self, session: &str) -> Fallible<()> {
        let field = Some(("session".to_owned(), session.to_owned()));
        let keys = self.records.all::<PromptKey>(Filter { field, ..Filter::default() });
        for key in keys.await? {
            self.records.remove::<PromptKey>(&key.id).await?;
        }
        Ok(())
    }

    /// The run of an earlier request, or a new one if that request stored only its key.
    async fn answered(
        self: &Arc<Self>,
        known: PromptKey,
        used: &PromptKey,
        session: &Session,
        new: NewRun,
    ) -> Fallible<Run> {
        if known.digest != used.digest {
            let message = "this key was used for another prompt in this session";
            return Err(ApiError::conflict("key_reused", message)
                .field("key")
                .hint("use a different key for each prompt"));
        }
        match self.records.find::<Run>(&known.run).await? {
            Some((run, _)) => Ok(self.as_it_is(run)),
            // Whether the active run received it will be known in a moment.
            None if new.pushes && self.clock.now() < known.created + PUSHED_WITHIN_MS => {
                let message = "a prompt with this key is being sent";
                Err(ApiError::conflict("key_in_use", message).hint("try again in a moment"))
            }
            // The server stopped before it was sent. It gets its own run, which is created once.
            None => self.submit_as(session, known, NewRun { pushes: false, ..new }).await,
        }
    }

    async fn submit_as(
        self: &Arc<Self>,
        session: &Session,
        key: PromptKey,
        new: NewRun,
    ) -> Fallible<Run> {
        let new = NewRun { id: Some(key.run.clone()), ..new };
        let submitted = Box::pin(self.submit(session, new)).await;
        let run = match submitted {
            // Two simultaneous requests have come this far, and the other one has written it.
            Err(error) if error.detail().code == "changed" => {
                let found = self.records.find::<Run>(&key.run).await?;
                found.map(|(run, _)| run).ok_or(error)?
            }
            submitted => submitted?,
        };
        if run.id != key.run {
            // The prompt was sent to an active run.
            let noted = self.records.update::<PromptKey, ()>(&key.id, |key| {
                key.run.clone_from(&run.id);
                Ok(())
            });
            noted.await?;
        }
        Ok(run)
    }
}

/// Refuses a key that is empty or too long.
pub(crate) fn check(key: &str) -> Fallible<()> {
    if key.is_empty() || key.chars().count() > LONGEST {
        return Err(ApiError::invalid("key", "the key must have 1 to 200 characters"));
    }
    Ok(())
}

fn digest(new: &NewRun) -> String {
    let mut hash = Sha256::new();
    hash.update([u8::from(new.pushes)]);
    hash.update(&new.prompt);
    format!("{:x}", hash.finalize())
}
