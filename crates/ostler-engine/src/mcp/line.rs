//! A server's connection to the host: the messages of a server inside the host, and the questions of any server to the
//! user.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use ostler_proto::Extra;
use ostler_proto::control::{AskHost, Elicitation, ElicitationReply, McpMessage};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::Inner;
use crate::host_calls::{Calls, HostCall};
use crate::host_question::{ProgramAsker, Requester};
use crate::model::ledger::Ledger;
use crate::permissions::Permissions;
use crate::sandbox::HostAsker;

/// How many messages a server inside the host may send before they are read.
const MESSAGES_AHEAD: usize = 256;

/// The connection to the host for one server.
#[derive(Clone)]
pub struct HostLine {
    server: String,
    // Not the whole outbox: a reference to it would keep the session's frames open.
    calls: Calls,
    permissions: Permissions,
    ledger: Ledger,
    servers: Weak<Inner>,
}

impl HostLine {
    pub(super) fn new(server: &str, servers: &Arc<Inner>) -> Self {
        Self {
            server: server.to_owned(),
            calls: servers.calls.clone(),
            permissions: servers.permissions.clone(),
            ledger: servers.ledger.clone(),
            servers: Arc::downgrade(servers),
        }
    }

    /// Sends a JSON-RPC message to a server inside the host and returns its answer, which has no meaning for a
    /// notification.
    ///
    /// # Errors
    /// When the host does not answer, or its answer is malformed.
    pub async fn send(&self, message: Value) -> Result<Value, String> {
        let server_name = self.server.clone();
        let request = McpMessage { server_name, message, extra: Extra::default() };
        let reply = self.calls.ask::<McpMessage>(AskHost::McpMessage(request), false).await?;
        Ok(reply.mcp_response.unwrap_or_default())
    }

    /// The messages that a server inside the host sends by itself, from now on. An earlier receiver gets no more.
    pub fn listen(&self) -> mpsc::Receiver<Value> {
        let (inbox, messages) = mpsc::channel(MESSAGES_AHEAD);
        if let Some(servers) = self.servers.upgrade() {
            let mut inboxes = servers.inboxes.lock();
            inboxes.insert(self.server.clone(), inbox);
        }
        messages
    }

    /// Asks the user, through the host; hooks may answer in the user's place. Everything but an answer is a no.
    pub async fn elicit(&self, mut question: Elicitation) -> ElicitationReply {
        question.property_order = question.property_order.or_else(|| {
            let properties = question.requested_schema.as_ref()?.get("properties")?.as_object()?;
            Some(properties.keys().cloned().collect())
        });
        let (answer, answered) = oneshot::channel();
        let question = Box::new(question);
        let no =
            || ElicitationReply { action: "decline".to_owned(), ..ElicitationReply::default() };
        match self.calls.send(HostCall::Elicit { question, answer }).await {
            true => answered.await.unwrap_or_else(|_| no()),
            false => no(),
        }
    }

    /// Asks the model for the server, if rules, hooks and the user permit it. `params` are those of
    /// `sampling/createMessage`.
    ///
    /// # Errors
    /// Why there is no answer, as text for the server.
    pub async fn sample(&self, params: Value) -> Result<Value, String> {
        let (answer, answered) = oneshot::channel();
        let gone = || "the session has ended".to_owned();
        match self
            .calls
            .send(HostCall::Sample { server: self.server.clone(), params, answer })
            .await
        {
            true => answered.await.unwrap_or_else(|_| Err(gone())),
            false => Err(gone()),
        }
    }

    /// The folders that the session works in: the working directory first.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.permissions.policy().working_directories().map(Path::to_owned).collect()
    }

    /// The working directory of the session.
    pub fn folder(&self) -> PathBuf {
        self.permissions.policy().cwd
    }

    /// Asks the user about hosts that the server wants to reach from the sandbox.
    pub fn host_asker(&self) -> Arc<dyn HostAsker> {
        Arc::new(ProgramAsker {
            calls: self.calls.clone(),
            permissions: self.permissions.clone(),
            ledger: self.ledger.clone(),
            requester: Requester::Server(self.server.clone()),
            agent: None,
            in_background: AtomicBool::new(true),
            // Servers start before the session does.
            may_wait_for_session: true,
        })
    }
}

impl std::fmt::Debug for HostLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostLine").field("server", &self.server).finish_non_exhaustive()
    }
}
