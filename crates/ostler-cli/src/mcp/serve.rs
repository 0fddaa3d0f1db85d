//! `ostler mcp serve`: the built-in tools for other MCP clients.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Context as _;
use ostler::engine::{self, StartContext};

use crate::screen::Screen;
use crate::signals::Signals;

/// The variable with the token that clients must send.
const TOKEN: &str = "OSTLER_MCP_TOKEN";

/// Serves over standard input and output, or over HTTP until a signal arrives.
pub(super) async fn run(
    scene: &StartContext,
    http: Option<SocketAddr>,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let mut scene = scene.clone();
    let token = scene.env.get(TOKEN).filter(|token| !token.is_empty());
    // Commands must not see it.
    scene.env = scene.env.with([(TOKEN.to_owned(), String::new())]);
    let tools = engine::tool_server(&scene)?;
    for warning in &tools.warnings {
        screen.complain(warning);
    }
    let Some(address) = http else {
        tools.serve_stdio().await.context("serving MCP over standard output")?;
        return Ok(ExitCode::SUCCESS);
    };
    anyhow::ensure!(
        address.ip().is_loopback() || token.is_some(),
        "--http {address} can be reached from other machines: set a token for clients in {TOKEN}, or use 127.0.0.1"
    );
    let mut signals = Signals::listen()?;
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let (token, is_new) = match token {
        Some(token) => (token, false),
        None => (uuid::Uuid::new_v4().simple().to_string(), true),
    };
    screen.line(&format!("listening on http://{}/mcp", listener.local_addr()?))?;
    if is_new {
        screen.line(&format!("token: {token}"))?;
    }
    let stop = async {
        signals.next().await;
    };
    tools.serve_http(listener, token, stop).await?;
    screen.line("ended")?;
    Ok(ExitCode::SUCCESS)
}
