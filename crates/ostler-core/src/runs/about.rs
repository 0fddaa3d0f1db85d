//! What the engine of a session reports about itself: its model, tools, agents and servers.

use ostler::proto::message::System;
use ostler::proto::message::system::{Init, InitMcpServer};
use ostler::{Handle, Message};
use ostler_base::error::{ApiError, Fallible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::Sessions;
use super::worker::{Command, Worker};
use crate::model::run::Session;
use crate::records::kept;

/// The report of the last engine of a session at the beginning of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct About {
    /// The id of the session.
    pub id: String,
    pub owner: String,
    /// Milliseconds since 1970.
    pub at: u64,
    pub model: String,
    pub permission_mode: String,
    pub cwd: String,
    pub version: Option<String>,
    pub tools: Vec<String>,
    pub agents: Vec<Named>,
    pub skills: Vec<String>,
    pub commands: Vec<Named>,
    pub mcp_servers: Vec<McpServer>,
    /// What a sandbox enforces for its commands.
    pub sandbox: Option<Value>,
}

kept!(About, "about");

/// An agent, or a slash command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The arguments of a command, as a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) argument_hint: Option<String>,
}

/// An MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    pub name: String,
    /// `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
    pub status: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many tools it has, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
}

/// A request for the engine of a session.
#[derive(Clone, Debug)]
pub(super) struct WantsEngine {
    /// Whether to start an engine if there is none.
    pub(super) starts: bool,
    pub(super) give: mpsc::Sender<Fallible<Option<Handle>>>,
}

impl Sessions {
    /// The engine of a session, for questions that change nothing; `None` if there is none and none is to be started.
    pub async fn engine(
        self: &std::sync::Arc<Self>,
        session: &Session,
        starts: bool,
    ) -> Fallible<Option<Handle>> {
        let (give, mut given) = mpsc::channel(1);
        let wants = WantsEngine { starts, give };
        match self.worker(&session.id) {
            Some(worker) if !starts => {
                // The worker may be about to end, which counts as no engine.
                let _ = worker.send(Command::Engine(wants)).await;
            }
            None if !starts => return Ok(None),
            _ => self.command(session, || Command::Engine(wants.clone())).await?,
        }
        match given.recv().await {
            Some(handle) => handle,
            None if starts => Err(ApiError::unavailable("stopping", "the session is ending")),
            None => Ok(None),
        }
    }
}

impl Worker {
    /// Returns the current engine, or a new one if nothing else is in progress.
    pub(super) async fn give_engine(&mut self, wants: WantsEngine) {
        let given = if wants.starts && self.closed.is_none() {
            self.connect().await.map(|engine| Some(engine.client.handle()))
        } else {
            Ok(self.engine.as_ref().map(|engine| engine.client.handle()))
        };
        // The caller may have gone.
        let _ = wants.give.try_send(given);
    }

    /// Stores the engine's report about itself, if it changed.
    pub(super) async fn note_about(&mut self, message: &Message) {
        let Message::System(System::Init(init)) = message else { return };
        let mut about = self.about(init);
        about.at = self.about.at;
        if about == self.about {
            return;
        }
        about.at = self.sessions.clock.now();
        self.about = about;
        // It is information for users; a run does not fail because of it.
        if let Err(error) = self.sessions.records.save(&self.about).await {
            tracing::warn!(session = self.session.id, %error, "the report of an engine could not be stored");
        }
    }

    fn about(&self, init: &Init) -> About {
        let handle = self.engine.as_ref().map(|engine| engine.client.handle());
        let commands = handle.as_ref().map(Handle::supported_commands).unwrap_or_default();
        let agents = handle.as_ref().map(Handle::supported_agents).unwrap_or_default();
        let command = |name: &String| {
            let known = commands.iter().find(|it| it.name == *name);
            Named {
                name: name.clone(),
                description: known.map(|it| it.description.clone()).unwrap_or_default(),
                argument_hint: known.and_then(|it| it.argument_hint.clone()),
            }
        };
        let agent = |name: &String| {
            let known = agents.iter().find(|it| it.name == *name);
            let description = known.map(|it| it.description.clone()).unwrap_or_default();
            Named { name: name.clone(), description, argument_hint: None }
        };
        let server = |server: &InitMcpServer| McpServer {
            name: server.name.clone(),
            status: server.status.clone(),
            ..McpServer::default()
        };
        About {
            id: self.session.id.clone(),
            owner: self.session.owner.clone(),
            at: 0,
            model: init.model.clone(),
            permission_mode: init.permission_mode.to_string(),
            cwd: init.cwd.clone(),
            version: init.claude_code_version.clone(),
            tools: init.tools.clone(),
            agents: init.agents.iter().flatten().map(agent).collect(),
            skills: init.skills.clone().unwrap_or_default(),
            commands: init.slash_commands.iter().map(command).collect(),
            mcp_servers: init.mcp_servers.iter().map(server).collect(),
            sandbox: init.extra.get("sandbox").cloned(),
        }
    }
}
