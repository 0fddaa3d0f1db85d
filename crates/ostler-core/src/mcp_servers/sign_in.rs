//! Users who sign in to MCP servers with OAuth. Each has own tokens for each space, and no other user's session gets them.
//!
//! The browser is led back to the page, which sends the address here. It counts only from the user who began: otherwise an
//! account could be given to a user to whom it does not belong.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler::engine::sign_in::{self, RedirectedSignIn};
use ostler_base::error::{ApiError, Fallible};
use ostler_door::users::Caller;
use ostler_store::Filter;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{McpServers, own_session};
use crate::confine::own_files::TOKENS;
use crate::model::mcp_server::ServerConfig;
use crate::model::run::Session;
use crate::model::space::Space;

/// How long a user may take in the browser.
const LIMIT: Duration = Duration::from_secs(600);
/// How many sign-ins one user may have begun.
const MOST: usize = 20;

/// The begun sign-ins, by the `state` that the browser brings back.
#[derive(Default)]
pub(super) struct SignIns(Mutex<HashMap<String, Begun>>);

struct Begun {
    user: String,
    session: String,
    server: String,
    at: Instant,
    finish: Arc<sign_in::Finish>,
}

/// A finished sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    pub session: String,
    pub server: String,
}

impl McpServers {
    /// Begins to sign a user in to a server of an own session. Returns the address that the user opens; it leads back to
    /// `redirect_uri`.
    pub async fn begin_sign_in(
        &self,
        caller: &Caller,
        session: &Session,
        name: &str,
        redirect_uri: &str,
    ) -> Fallible<String> {
        own_session(caller, session)?;
        let config = self.remote(session, name).await?;
        let folder = self.tokens_of(session).await?;
        let begun = sign_in::begin_at(name.to_owned(), config, folder, redirect_uri).await;
        let RedirectedSignIn { url, state, finish, .. } =
            begun.map_err(|reason| failed(self, &reason))?;
        let user = caller.user.clone();
        let (session, server) = (session.id.clone(), name.to_owned());
        let mut begun = self.sign_ins.0.lock();
        begun.retain(|_, begun| begun.at.elapsed() < LIMIT);
        if begun.values().filter(|begun| begun.user == user).count() >= MOST {
            let message =
                format!("you have begun {MOST} sign-ins; finish one, or wait ten minutes");
            return Err(ApiError::conflict("too_many_sign_ins", message));
        }
        begun.insert(state, Begun { user, session, server, at: Instant::now(), finish });
        Ok(url)
    }

    /// Finishes signing in, with the address that the browser was led to. Each sign-in can be finished once.
    pub async fn finish_sign_in(&self, caller: &Caller, address: &str) -> Fallible<SignedIn> {
        let unknown = || {
            let message = "no sign-in that you began belongs to this address, or it took too long";
            ApiError::not_found(message).hint("begin to sign in again")
        };
        let state = reqwest::Url::parse(address).ok().and_then(|url| {
            let (_, state) = url.query_pairs().find(|(name, _)| name == "state")?;
            Some(state.into_owned())
        });
        let state = state.ok_or_else(unknown)?;
        let begun = {
            let mut all = self.sign_ins.0.lock();
            let is_own = |begun: &Begun| begun.user == caller.user && begun.at.elapsed() < LIMIT;
            if !all.get(&state).is_some_and(is_own) {
                return Err(unknown());
            }
            all.remove(&state).ok_or_else(unknown)?
        };
        (begun.finish)(address.to_owned()).await.map_err(|reason| failed(self, &reason))?;
        Ok(SignedIn { session: begun.session, server: begun.server })
    }

    /// Deletes the tokens of a user for a server.
    pub async fn sign_out(&self, caller: &Caller, session: &Session, name: &str) -> Fallible<()> {
        own_session(caller, session)?;
        let config = self.remote(session, name).await?;
        let folder = Some(self.tokens_of(session).await?);
        let ended = sign_in::end(name.to_owned(), config, folder).await;
        ended.map_err(|reason| failed(self, &reason))
    }

    /// The sessions whose engines use the same tokens as this one.
    pub async fn with_same_tokens(&self, session: &Session) -> Fallible<Vec<Session>> {
        let owner = session.owner.clone();
        if let Some(space) = &session.setup.space {
            return self.spaces.sessions_of(space, owner).await;
        }
        let filter = Filter { owner: Some(owner), ..Filter::default() };
        let all: Vec<Session> = self.records.all(filter).await?;
        Ok(all.into_iter().filter(|other| other.setup.space.is_none()).collect())
    }

    /// Deletes all tokens of a user in a space, who has left it or with whom it ends.
    pub async fn forget_in_space(&self, user: &str, space: &Space) {
        self.pool.end_unused_of(user);
        self.delete(self.tokens(user, Some(space))).await;
    }

    /// Deletes all tokens of a user, and ends the user's shared programs.
    pub async fn forget_user(&self, user: &str) {
        self.pool.end_unused_of(user);
        self.sign_ins.0.lock().retain(|_, begun| begun.user != user);
        self.delete(self.tokens_of_user(user)).await;
    }

    /// The folder for the tokens of the session's user: no other user has it, and it is another one in each space.
    pub(super) async fn tokens_of(&self, session: &Session) -> Fallible<PathBuf> {
        let space = match &session.setup.space {
            Some(id) => self.records.find::<Space>(id).await?.map(|(space, _)| space),
            None => None,
        };
        Ok(self.tokens(&session.owner, space.as_ref()))
    }

    fn tokens(&self, user: &str, space: Option<&Space>) -> PathBuf {
        // A later space of the same name is another one.
        let place = space.map(|space| (&space.id, space.created));
        self.tokens_of_user(user).join(digest(&format!("{place:?}")))
    }

    fn tokens_of_user(&self, user: &str) -> PathBuf {
        self.config.data.join(TOKENS).join(digest(user))
    }

    async fn delete(&self, folder: PathBuf) {
        let deleted = tokio::task::spawn_blocking(move || delete(&folder)).await;
        if let Ok(Err(error)) = deleted {
            tracing::error!(%error, "tokens of MCP servers could not be deleted");
        }
    }

    /// The configuration of a server behind an address, as it is written.
    async fn remote(
        &self,
        session: &Session,
        name: &str,
    ) -> Fallible<ostler::options::McpServerConfig> {
        let servers = self.of_session(session).await?;
        let server = servers.into_iter().find(|server| server.name == name);
        let server = server.ok_or_else(|| ostler_base::error::not_found("MCP server", name))?;
        let refused = |why: &str| Err(ApiError::conflict("no_sign_in", format!("{name} {why}")));
        match (&server.problem, &server.config) {
            (Some(why), _) => refused(&format!("does not start: {why}")),
            (None, ServerConfig::Stdio(_)) => refused("is a program, which has no sign-in"),
            (None, ServerConfig::Http(remote) | ServerConfig::Sse(remote))
                if remote.url.contains("${") =>
            {
                refused("has a variable in its address; users can sign in to fixed addresses only")
            }
            (None, config) => Ok(config.for_engine(false)),
        }
    }
}

fn failed(servers: &McpServers, reason: &str) -> ApiError {
    ApiError::conflict("sign_in_failed", servers.redactor.text(reason).into_owned())
}

fn delete(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn digest(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}
