//! Gives a session's MCP servers to its engine.

use std::sync::Arc;

use async_trait::async_trait;
use ostler::engine::{EmbeddedWithTrust, ServerHosting};
use ostler_base::error::Fallible;
use sha2::{Digest as _, Sha256};

use super::McpServers;
use crate::config::EngineChoice;
use crate::model::run::Session;
use crate::runs::options::{EngineParts, EngineSetup};

#[async_trait]
impl EngineSetup for McpServers {
    async fn set_up(&self, session: &Session, engine_parts: &mut EngineParts) -> Fallible<()> {
        if self.config.engine != EngineChoice::Embedded {
            return Ok(());
        }
        let options = &mut engine_parts.options;
        options.engine.transport = Some(Arc::new(EmbeddedWithTrust {
            trusted_repositories: self.config.trusted_repositories.clone(),
            hosting: Some(self.hosting(session).await?),
        }));
        // The servers of a task are those of its skill.
        if session.setup.task.is_some() {
            return Ok(());
        }
        // No server comes from a file of the operator or of the project.
        options.tools.strict_mcp = true;
        for server in self.of_session(session).await? {
            match &server.problem {
                None if server.on => {
                    self.redact(&server.config);
                    let config = server.config.for_engine(server.confined);
                    options.tools.mcp_servers.entry(server.name).or_insert(config);
                }
                None => {}
                Some(why) => {
                    let name = &server.name;
                    tracing::warn!(
                        session = session.id,
                        "the MCP server {name} does not start: {why}"
                    );
                }
            }
        }
        Ok(())
    }

    async fn stamp(&self, session: &Session) -> Fallible<String> {
        if session.setup.task.is_some() {
            return Ok(String::new());
        }
        let used = self.of_session(session).await?.into_iter();
        let used = used.filter(|server| server.on && server.problem.is_none());
        let used: Vec<_> = used.map(|it| (it.name, it.config, it.confined)).collect();
        if used.is_empty() {
            return Ok(String::new());
        }
        Ok(format!("{:x}", Sha256::digest(format!("{used:?}").as_bytes())))
    }
}

impl McpServers {
    /// What the engine of a session may have in common with others: only with those of the same user in the same space,
    /// with the same folder and boundary.
    async fn hosting(&self, session: &Session) -> Fallible<ServerHosting> {
        let setup = self.spaces.space_setup(session).await?.stamp();
        let space = &session.setup.space;
        let tokens = self.tokens_of(session).await?;
        let identity = serde_json::json!([session.owner, space, session.setup.cwd, setup]);
        let identity = identity.to_string();
        Ok(ServerHosting::new(self.pool.clone(), &session.owner, identity, tokens))
    }
}
