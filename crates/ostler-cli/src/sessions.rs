//! Conversations on disk: which there are, and which to go on with.

use std::path::Path;

use ostler_engine::store::{Begin, Opened, Projects, Scene, SessionStart, StoreError};

use crate::args::Args;
use crate::screen::{Screen, clean};

/// The conversation to go on with, or a new one; `None` when nothing is to be kept.
pub(crate) async fn open(args: &Args, cwd: &Path) -> anyhow::Result<Option<Opened>> {
    let begin = match (&args.resume, args.go_on) {
        (Some(key), _) => Begin::Resume(key.clone()),
        (None, true) => Begin::Latest,
        (None, false) if args.no_session_persistence => return Ok(None),
        (None, false) => Begin::New,
    };
    let projects = match projects() {
        Ok(projects) => projects,
        // Without a home there is nowhere to keep anything, which is no reason not to talk.
        Err(_) if begin == Begin::New => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let start = SessionStart { begin, fork: args.fork_session, ..SessionStart::default() };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let scene = Scene { cwd: cwd.to_owned(), version, entrypoint: Some("cli".to_owned()) };
    let opened = tokio::task::spawn_blocking(move || projects.open(scene, &start)).await?;
    Ok(Some(opened?))
}

/// Lists conversations.
pub(crate) fn list(all: bool, screen: &mut Screen) -> anyhow::Result<()> {
    let projects = projects()?;
    let cwd = std::env::current_dir()?;
    let sessions = if all { projects.all_sessions() } else { projects.sessions(&cwd) };
    if sessions.is_empty() {
        return Ok(screen.line("no conversations yet")?);
    }
    for session in sessions {
        let summary = clean(&session.summary).replace('\n', " ");
        screen.line(&format!("{}  {summary}", session.id))?;
    }
    Ok(())
}

fn projects() -> Result<Projects, StoreError> {
    Projects::from_env(|name| std::env::var_os(name))
}
