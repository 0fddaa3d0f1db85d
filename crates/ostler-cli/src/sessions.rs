//! Conversations on disk: which there are, and which to go on with.

use std::path::Path;

use ostler_engine::store::{Begin, Opened, Projects, Scene, SessionStart, StoreError};
use ostler_proto::api::Usage;
use ostler_proto::message::{ResultSubtype, TurnResult};
use ostler_proto::{SessionId, Uuid};

use crate::args::{Args, OutputFormat};
use crate::screen::Screen;
use crate::text::clean;

/// The conversation to go on with, or a new one; `None` when nothing is to be kept.
pub(crate) fn open(args: &Args, cwd: &Path) -> Result<Option<Opened>, StoreError> {
    let begin = match (&args.resume, args.go_on) {
        (Some(key), _) => Begin::Resume(key.clone()),
        (None, true) => Begin::Latest,
        (None, false) if args.no_session_persistence => return Ok(None),
        (None, false) => Begin::New,
    };
    let projects = match projects() {
        Ok(projects) => projects,
        // Without a home there is nowhere to keep anything, which is no reason not to talk.
        Err(_) if begin == Begin::New && args.session_id.is_none() => return Ok(None),
        Err(error) => return Err(error),
    };
    let start = SessionStart {
        begin,
        fork: args.fork_session,
        at: args.resume_session_at.as_deref().map(Uuid::from),
        drops_turn: args.resume_drops_turn.as_deref().map(Uuid::from),
        session_id: args.session_id.as_deref().map(SessionId::from),
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let scene = Scene { cwd: cwd.to_owned(), version, entrypoint: Some("cli".to_owned()) };
    // It reads the whole file, and nothing else happens meanwhile.
    tokio::task::block_in_place(|| projects.open(scene, &start)).map(Some)
}

/// The result that tells a program why its conversation could not be gone on with; `None` if that is not what
/// failed: then it is told as any other mistake on the command line.
pub(crate) fn failure(args: &Args, error: &StoreError) -> Option<TurnResult> {
    let goes_on = args.resume.is_some() || args.go_on;
    let is_about_new_id =
        matches!(error, StoreError::InUse(_) | StoreError::IdNeedsFork | StoreError::NotAUuid(_));
    if !goes_on || is_about_new_id || args.output_format == OutputFormat::Text {
        return None;
    }
    let fresh = || uuid::Uuid::new_v4().to_string();
    let wanted = args.resume.clone().filter(|key| key.parse::<uuid::Uuid>().is_ok());
    Some(TurnResult {
        subtype: ResultSubtype::ErrorDuringExecution,
        is_error: true,
        errors: Some(vec![error.to_string()]),
        session_id: SessionId::from(wanted.unwrap_or_else(fresh)),
        usage: Usage {
            input_tokens: Some(0),
            cache_creation_input_tokens: Some(0),
            cache_read_input_tokens: Some(0),
            output_tokens: Some(0),
            ..Usage::default()
        },
        uuid: Uuid::from(fresh()),
        result_index: Some(0),
        ..TurnResult::default()
    })
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
