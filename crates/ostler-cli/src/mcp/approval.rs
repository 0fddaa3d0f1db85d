//! The question whether servers of the project's `.mcp.json` may start, before a conversation at the terminal begins.

use std::io::{self, IsTerminal as _};

use ostler::engine::StartContext;
use ostler::engine::server_files::write;
use ostler::engine::server_files::{self, Approval, ConfiguredServer};

use super::{configured, described};
use crate::elicitation::{Choice, by_key};
use crate::input::Input;
use crate::screen::Screen;
use crate::signals::{Signals, StopRequest};
use crate::text::spelled;

/// The keys, and what they do.
const KEYS: [(&str, &str); 3] = [
    ("y", "start it, in this project from now on"),
    ("n", "do not start it, and do not ask again"),
    ("Esc", "not now"),
];

/// Asks about every server that the user has neither approved nor rejected, and writes the answers to `~/.claude.json`.
/// Returns the input that was read, which has what the user typed ahead; `None` if nothing was asked. The inner error is
/// the signal that ends the program.
///
/// # Errors
/// When the terminal cannot be used. A configuration that cannot be read is reported when the session starts.
pub(crate) async fn ask(
    scene: &StartContext,
    screen: &mut Screen,
) -> io::Result<Result<Option<Input>, StopRequest>> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(Ok(None));
    }
    let Ok(all) = tokio::task::block_in_place(|| configured(scene)) else { return Ok(Ok(None)) };
    let mut asked: Vec<&ConfiguredServer> = Vec::new();
    for server in all.servers.iter().filter(|server| server.approval == Approval::Pending) {
        let config = server_files::resolved(server, scene);
        let is_refused = config.is_ok_and(|it| all.lists.refusal(&server.name, &it).is_some());
        if !is_refused && !asked.iter().any(|it| it.name == server.name) {
            asked.push(server);
        }
    }
    if asked.is_empty() {
        return Ok(Ok(None));
    }
    let mut signals = Signals::listen()?;
    let mut input = Input::from_stdin();
    for server in asked {
        about(server, screen)?;
        let choice = tokio::select! {
            choice = by_key(&KEYS, &mut input, screen) => choice?,
            signal = signals.next() => {
                screen.erase()?;
                return Ok(Err(signal));
            }
        };
        let (outcome, changed) = match choice {
            Choice::Accept => ("→ it starts", write::approve(scene, &server.name)),
            Choice::Decline => ("→ it does not start", write::reject(scene, &server.name)),
            Choice::Cancel | Choice::Again => {
                screen.remark("→ it does not start now")?;
                continue;
            }
        };
        match changed {
            Ok(_) => screen.remark(outcome)?,
            Err(reason) => screen.error(&format!(
                "your answer was not saved, so {} does not start: {reason}",
                spelled(&server.name)
            ))?,
        }
    }
    Ok(Ok(Some(input)))
}

/// Shows what would start. Nothing in it can hide, or pass for a line of this program.
fn about(server: &ConfiguredServer, screen: &mut Screen) -> io::Result<()> {
    let name = spelled(&server.name);
    screen.line(&format!(
        "This project comes with the MCP server {name}, which you have not approved:"
    ))?;
    let (target, _) = described(&server.entry);
    let file = server.file.display().to_string();
    for text in [target, format!("(in {file})")] {
        for line in screen.fitted(&spelled(&text), 2) {
            screen.line(&format!("  {line}"))?;
        }
    }
    screen.line("A server can do on this machine whatever you can do.")
}
