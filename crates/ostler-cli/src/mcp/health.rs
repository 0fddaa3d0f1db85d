//! Connects to the MCP servers as a session does, and says how they are.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::bail;
use ostler::engine::pick::OFFLINE;
use ostler::engine::{self as host, StartContext};
use ostler::{Handle, Message};
use ostler_proto::launch::SessionChoice;
use ostler_proto::mcp::{McpConnection, McpServerStatus};
use ostler_proto::message::System;

use crate::args::Args;
use crate::debug::Debug;
use crate::session::Session;
use crate::signals::Signals;
use crate::text::clean;

/// The longest time until all servers are connected or have failed. Each has its own limit (`MCP_TIMEOUT`) before.
const LONGEST: Duration = Duration::from_secs(90);
/// How often to ask how they are.
const PAUSE: Duration = Duration::from_millis(50);

/// The state of every server, after all have connected or failed. Runs no hooks, saves nothing and asks no model.
pub(crate) async fn check(
    args: &Args,
    scene: &StartContext,
) -> anyhow::Result<Vec<McpServerStatus>> {
    let mut trial = scene.clone();
    trial.launch.model.name = Some(OFFLINE.to_owned());
    trial.launch.session = SessionChoice::default();
    trial.launch.no_session_persistence = true;
    trial.runs_hooks = false;
    let running = tokio::task::block_in_place(|| host::start(&trial))?;
    let mut signals = Signals::listen()?;
    let session =
        Session::connect(running.connection, Debug::of(args)?, false, &mut signals).await?;
    let Ok(session) = session else { bail!("stopped") };
    let handle = session.handle();
    let checked = tokio::select! {
        settled = settled(&handle) => settled,
        _ = signals.next() => Err(anyhow::anyhow!("stopped")),
    };
    session.end().await;
    checked
}

async fn settled(handle: &Handle) -> anyhow::Result<Vec<McpServerStatus>> {
    let begun = Instant::now();
    loop {
        let servers = states(handle).await?;
        let is_pending = |server: &McpServerStatus| server.status == McpConnection::Pending;
        if !servers.iter().any(is_pending) || begun.elapsed() > LONGEST {
            return Ok(servers);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The state of every server now. One that was tried in vain has failed for the user, although the engine tries again.
async fn states(handle: &Handle) -> Result<Vec<McpServerStatus>, ostler::Error> {
    let mut servers = handle.mcp_server_status().await?.mcp_servers;
    for server in &mut servers {
        let last_error = server.extra.get("lastError").and_then(|error| error.as_str());
        if let (McpConnection::Pending, Some(error)) = (&server.status, last_error) {
            server.error = Some(format!("{error} (it is tried again)"));
            server.status = McpConnection::Failed;
        }
    }
    Ok(servers)
}

/// A mark and a sentence about a server's state, with what to do.
pub(crate) fn state_text(server: &McpServerStatus) -> (char, String) {
    let reason = || clean(server.error.as_deref().unwrap_or("no reason is known"));
    let name = &server.name;
    match &server.status {
        McpConnection::Connected => {
            let n = server.tools.as_ref().map_or(0, Vec::len);
            ('✓', format!("connected, {n} {}", if n == 1 { "tool" } else { "tools" }))
        }
        McpConnection::NeedsAuth => ('!', format!("needs sign-in: ostler mcp login {name}")),
        McpConnection::Pending => ('!', "still connecting".to_owned()),
        McpConnection::Disabled => ('-', "switched off in this project".to_owned()),
        McpConnection::Failed => ('✗', format!("failed: {}", reason())),
        other => ('✗', format!("{other}: {}", reason())),
    }
}

/// Says once about each server that it cannot be used, when a turn begins.
#[derive(Debug, Default)]
pub(crate) struct Complaints(BTreeSet<String>);

impl Complaints {
    /// New sentences after a message. Only the first of a turn has the state of the servers.
    pub(crate) async fn after(&mut self, message: &Message, handle: &Handle) -> Vec<String> {
        let Message::System(System::Init(init)) = message else { return Vec::new() };
        let is_out = |state: &str| matches!(state, "failed" | "needs-auth" | "pending");
        if !init.mcp_servers.iter().any(|server| is_out(&server.status)) {
            return Vec::new();
        }
        // If the engine has ended, the user is told about that.
        let Ok(servers) = states(handle).await else { return Vec::new() };
        let new = servers.iter().filter_map(complaint);
        new.filter(|complaint| self.0.insert(complaint.clone())).collect()
    }
}

/// A sentence about a server that cannot be used; `None` for the others.
fn complaint(server: &McpServerStatus) -> Option<String> {
    let is_out = matches!(server.status, McpConnection::Failed | McpConnection::NeedsAuth);
    is_out.then(|| format!("MCP server {}: {}", server.name, state_text(server).1))
}
