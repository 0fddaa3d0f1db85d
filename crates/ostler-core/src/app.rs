//! The parts of the server that every route uses.

use std::path::PathBuf;
use std::sync::Arc;

use ostler_base::error::{ApiError, Fallible};
use ostler_door::guard::Guard;
use ostler_door::permits::UserLimit;
use ostler_door::public_url::PublicUrl;
use ostler_door::users::Caller;
use ostler_store::Store;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::approvals::answer::{AnswersRequest, DecisionRequest};
use crate::approvals::record::Approval;
use crate::config::Config;
use crate::hooks::Hooks;
use crate::mcp_servers::McpServers;
use crate::metrics::Metrics;
use crate::model::run::{Run, RunState};
use crate::proxy::Proxy;
use crate::runs::Sessions;
use crate::schedules::Schedules;
use crate::session_room::SessionRoom;
use crate::spaces::Spaces;
use crate::tasks::Tasks;
use crate::upkeep::Upkeep;

/// The parts of the server.
#[derive(Clone)]
pub struct App(Arc<Parts>);

pub struct Parts {
    pub config: Arc<Config>,
    pub store: Arc<dyn Store>,
    pub sessions: Arc<Sessions>,
    pub approvals: Arc<Approvals>,
    pub tasks: Arc<Tasks>,
    pub schedules: Arc<Schedules>,
    pub hooks: Arc<Hooks>,
    pub spaces: Arc<Spaces>,
    pub mcp: Arc<McpServers>,
    pub proxy: Arc<Proxy>,
    pub metrics: Arc<Metrics>,
    pub guard: Arc<Guard>,
    pub document: Value,
    /// Limits on what one user may have at the same time.
    pub limits: UserLimits,
    pub session_room: Arc<SessionRoom>,
    /// Checks and backups of the database.
    pub upkeep: Upkeep,
    /// Locked while a session is being deleted.
    pub deleting: tokio::sync::Mutex<()>,
    /// Where browsers reach the server, if not at the address where it listens.
    pub public_url: Option<PublicUrl>,
    /// Cancelled when all events were sent: clients that only listen are to disconnect.
    pub closing: CancellationToken,
}

/// Limits on what one user may have at the same time. Engines have their own limit, for which runs wait.
pub struct UserLimits {
    pub streams: UserLimit,
    pub sockets: UserLimit,
    pub agui_runs: UserLimit,
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl App {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The folder for an agent: the workspace, or a folder in it or in one of the other roots.
    pub fn folder(&self, requested: Option<PathBuf>) -> Fallible<PathBuf> {
        let workspace = &self.config.workspace;
        let Some(requested) = requested else { return Ok(workspace.clone()) };
        let refused =
            |why: &str| ApiError::invalid("cwd", format!("{} {why}", requested.display()));
        // Links are resolved first: a link must not lead out.
        let folder =
            workspace.join(&requested).canonicalize().map_err(|_| refused("cannot be found"))?;
        let roots = std::iter::once(workspace).chain(&self.config.roots);
        let is_inside =
            roots.filter_map(|root| root.canonicalize().ok()).any(|root| folder.starts_with(root));
        if !is_inside {
            return Err(refused("is not inside a folder in which agents may work")
                .hint("the operator names such folders with --root"));
        }
        if !folder.is_dir() {
            return Err(refused("is not a folder"));
        }
        Ok(folder)
    }

    /// Refuses a new session to a user who has too many.
    pub async fn room_for_session(&self, user: &str) -> Fallible<()> {
        self.session_room.take(user).await
    }

    /// The model in a request, if requests may choose it.
    pub fn model(&self, requested: Option<String>) -> Fallible<Option<String>> {
        if requested.is_some() && !self.config.model_by_request {
            return Err(ApiError::invalid(
                "model",
                "on this server only the operator may choose the model",
            ));
        }
        Ok(requested)
    }

    /// Decides about a tool call. A run that was interrupted while it waited for the decision resumes.
    pub async fn decide(
        &self,
        caller: &Caller,
        via: &'static str,
        id: &str,
        request: DecisionRequest,
    ) -> Fallible<Approval> {
        let decided = self.approvals.decide(caller, via, id, request).await?;
        self.go_on(caller, &decided).await;
        Ok(decided)
    }

    /// Answers the agent's questions. A run that was interrupted while it waited for the answers resumes.
    pub async fn answer(
        &self,
        caller: &Caller,
        via: &'static str,
        id: &str,
        request: AnswersRequest,
    ) -> Fallible<Approval> {
        let answered = self.approvals.answer(caller, via, id, request).await?;
        self.go_on(caller, &answered).await;
        Ok(answered)
    }

    async fn go_on(&self, caller: &Caller, decided: &Approval) {
        let Ok(Some((run, _))) = self.sessions.records.find::<Run>(&decided.run).await else {
            return;
        };
        let is_stopped = decided.answer.as_ref().is_some_and(|answer| answer.stop);
        if run.state == RunState::Interrupted
            && !is_stopped
            && let Err(error) = self.sessions.resume(caller, &run.id).await
            && error.detail().code != "already_resumed"
        {
            tracing::warn!(run = run.id, %error, "a run could not be resumed");
        }
    }
}
