//! `ostler mcp login` and `ostler mcp logout`.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use ostler::engine::server_files::{self, Approval};
use ostler::engine::{StartContext, sign_in};
use ostler_engine::mcp::StartedSignIn;
use ostler_proto::mcp::McpServerConfig;

use super::{configured, find};
use crate::input::Input;
use crate::screen::Screen;
use crate::signals::Signals;
use crate::text::clean;

/// Signs in: shows the address, and waits for the browser or for the address that it was led to.
pub(super) async fn run(
    scene: &StartContext,
    name: &str,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let config = config(scene, name)?;
    let started = sign_in::begin(name.to_owned(), config, sign_in::folder(scene)).await;
    let StartedSignIn { url, finish, mut finished, .. } = started.map_err(anyhow::Error::msg)?;
    screen.line(&format!("Open this address in a browser to sign in to {name}:"))?;
    screen.line("")?;
    screen.line(&clean(&url))?;
    screen.line("")?;
    screen.line(
        "If the browser runs on another machine, paste the address that it is led to here.",
    )?;
    let mut signals = Signals::listen()?;
    let mut input = Input::from_stdin();
    let mut has_input = true;
    loop {
        let outcome = tokio::select! {
            outcome = &mut finished => outcome,
            line = input.line(), if has_input => match line {
                Some(line) if line.text.trim().is_empty() => continue,
                Some(line) => match finish(line.text.trim().to_owned()).await {
                    // A mistake in the pasted address can be corrected.
                    Err(reason) => {
                        screen.complain(&format!("this address does not sign you in: {reason}"));
                        continue;
                    }
                    done => done,
                },
                None => {
                    has_input = false;
                    continue;
                }
            },
            signal = signals.next() => return Ok(signal.code()),
        };
        outcome.map_err(|reason| anyhow::anyhow!("signing in to {name} failed: {reason}"))?;
        screen.line(&format!("Signed in to {name}."))?;
        return Ok(ExitCode::SUCCESS);
    }
}

/// Signs out.
pub(super) async fn out(
    scene: &StartContext,
    name: &str,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let config = config(scene, name)?;
    let ended = sign_in::end(name.to_owned(), config, sign_in::folder(scene)).await;
    ended.map_err(anyhow::Error::msg)?;
    screen.line(&format!("Signed out of {name}. To sign in again: ostler mcp login {name}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration of a server that a session would connect to.
fn config(scene: &StartContext, name: &str) -> anyhow::Result<McpServerConfig> {
    let all = configured(scene)?;
    let server = find(&all, name)?;
    ensure!(
        !matches!(server.approval, Approval::Pending | Approval::Rejected),
        "the MCP server {name} comes with this project and is not approved: put its name into enabledMcpjsonServers of \
         your own settings"
    );
    let config = server_files::resolved(server, scene).map_err(anyhow::Error::msg)?;
    if let Some(refusal) = all.lists.refusal(name, &config) {
        return Err(anyhow::Error::msg(refusal));
    }
    let is_remote = matches!(config, McpServerConfig::Http(_) | McpServerConfig::Sse(_));
    is_remote.then_some(config).with_context(|| {
        format!(
            "the MCP server {name} has no sign-in: only servers behind a URL (http, sse) have one"
        )
    })
}
