//! Opens the conversation that the launch names: an earlier one, or a new one.

use ostler_engine::store::{self, OpenedSession, Projects, SessionStart, StartFrom, StoreError};
use ostler_proto::api::Usage;
use ostler_proto::build;
use ostler_proto::launch::SessionChoice;
use ostler_proto::message::{ResultSubtype, TurnResult};
use ostler_proto::{SessionId, Uuid};

use super::StartContext;

/// The conversation to resume, or a new one; `None` if the session is not stored.
///
/// # Errors
/// When the conversation does not exist or cannot be read.
pub fn open(context: &StartContext) -> Result<Option<OpenedSession>, StoreError> {
    let SessionChoice { go_on, resume, fork, resume_at, resume_drops_turn, id } =
        &context.launch.session;
    let begin = match (resume, go_on) {
        (Some(key), _) => StartFrom::Resume(key.clone()),
        (None, true) => StartFrom::Latest,
        (None, false) if context.launch.no_session_persistence => return Ok(None),
        (None, false) => StartFrom::New,
    };
    let projects = match projects(context) {
        Ok(projects) => projects,
        // Without a home directory the session starts too; it is only not stored.
        Err(_) if begin == StartFrom::New && id.is_none() => return Ok(None),
        Err(error) => return Err(error),
    };
    let start = SessionStart {
        begin,
        fork: *fork,
        at: resume_at.as_deref().map(Uuid::from),
        drops_turn: resume_drops_turn.as_deref().map(Uuid::from),
        session_id: id.as_deref().map(SessionId::from),
    };
    let place = store::LineContext {
        cwd: context.cwd.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        entrypoint: Some(context.entrypoint.clone()),
    };
    projects.open(place, &start).map(Some)
}

/// The folders of all conversations.
///
/// # Errors
/// When there is no home directory to store them in.
pub fn projects(context: &StartContext) -> Result<Projects, StoreError> {
    Projects::from_env(|name| context.var(name).map(Into::into))
}

/// The result that reports to a program why its conversation cannot be resumed. `None` if the error is about something
/// else; then it is reported like any other mistake on the command line.
pub fn failure(choice: &SessionChoice, error: &StoreError) -> Option<TurnResult> {
    let resumes = choice.resume.is_some() || choice.go_on;
    let is_about_new_id =
        matches!(error, StoreError::InUse(_) | StoreError::IdNeedsFork | StoreError::NotAUuid(_));
    if !resumes || is_about_new_id {
        return None;
    }
    let wanted = choice.resume.clone().filter(|key| key.parse::<uuid::Uuid>().is_ok());
    Some(failed_start(wanted, &error.to_string()))
}

/// The result of a session that could not start.
pub fn failed_start(session: Option<String>, reason: &str) -> TurnResult {
    let fresh = || uuid::Uuid::new_v4().to_string();
    build!(TurnResult {
        subtype: ResultSubtype::ErrorDuringExecution,
        is_error: true,
        errors: Some(vec![reason.to_owned()]),
        session_id: SessionId::from(session.unwrap_or_else(fresh)),
        usage: build!(Usage {
            input_tokens: Some(0),
            cache_creation_input_tokens: Some(0),
            cache_read_input_tokens: Some(0),
            output_tokens: Some(0)
        }),
        uuid: Uuid::from(fresh()),
        result_index: Some(0)
    })
}
