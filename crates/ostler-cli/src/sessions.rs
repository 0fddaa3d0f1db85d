//! Conversations on disk: which there are.

use ostler::engine::sessions;

use crate::args::Args;
use crate::scene;
use crate::screen::Screen;
use crate::text::clean;

/// Lists conversations.
pub(crate) fn list(args: &Args, all: bool, screen: &mut Screen) -> anyhow::Result<()> {
    let scene = scene::of(args)?;
    let projects = sessions::projects(&scene)?;
    let sessions = if all { projects.all_sessions() } else { projects.sessions(&scene.cwd) };
    if sessions.is_empty() {
        return Ok(screen.line("no conversations yet")?);
    }
    for session in sessions {
        let summary = clean(&session.summary).replace('\n', " ");
        screen.line(&format!("{}  {summary}", session.id))?;
    }
    Ok(())
}
