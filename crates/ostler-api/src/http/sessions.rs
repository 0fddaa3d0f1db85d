//! Sessions over HTTP.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{delete, get, patch, post};
use ostler::PermissionMode;
use ostler_base::error::{self, ApiError, Fallible, JsonBody, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::config::{Config, EngineChoice};
use ostler_core::log_writers;
use ostler_core::model::run::{Session, Setup};
use ostler_core::model::tally;
use ostler_core::records::Kept as _;
use ostler_core::spaces::Asked;
use ostler_door::users::Caller;
use ostler_store::{Filter, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::listing::{Listing, limit, seen_by};
use super::openapi::{Api, Op};
use super::session_view::{SessionView, view, views};
use super::sse::{self, Rendered};

pub(super) const LONGEST_TITLE: usize = 200;
/// The kinds of events in a session's log.
const KINDS: [&str; 8] =
    ["prompt", "run", "message", "cut_off", "approval", "notice", "state", "engine"];

pub(super) fn routes(api: Api) -> Api {
    let follow = "A session's log as server-sent events, from its beginning or after Last-Event-ID";
    let changes = "Changes the title or the folder of a session";
    let closes = "Deletes a session: cancels its runs, approvals and schedules, and removes its log, transcripts and \
                  file checkpoints";
    let lists = "Sessions, the most recently active first";
    api.on(
        Op::get("/api/sessions", "listSessions", lists)
            .query::<SessionsQuery>()
            .returns::<Sessions>(200, "The sessions"),
        get(list),
    )
    .on(
        Op::post("/api/sessions", "createSession", "Creates a session")
            .takes::<NewSession>()
            .returns::<SessionView>(201, "The session"),
        post(create),
    )
    .on(
        Op::get("/api/sessions/{id}", "getSession", "A session")
            .returns::<SessionView>(200, "The session"),
        get(show),
    )
    .on(
        Op::patch("/api/sessions/{id}", "changeSession", changes)
            .takes::<ChangeSession>()
            .returns::<SessionView>(200, "The session"),
        patch(change),
    )
    .on(
        Op::delete("/api/sessions/{id}", "closeSession", closes).returns_nothing(204, "Deleted"),
        delete(close),
    )
    .on(
        Op::get("/api/sessions/{id}/events", "followSession", follow)
            .query::<AfterQuery>()
            .returns_events(200, &KINDS, "Events with their numbers"),
        get(events),
    )
    .on(
        Op::get("/api/sessions/{id}/log", "readLog", "A part of a session's log")
            .query::<LogQuery>()
            .returns::<Listing<LogEntry>>(200, "The events"),
        get(log),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionsQuery {
    /// Only sessions with this text in their title, or at the beginning of a prompt.
    #[schemars(length(max = LONGEST_TITLE))]
    q: Option<String>,
    /// Only sessions after this place: the `next` of an earlier response.
    #[schemars(length(max = LONGEST_TITLE))]
    after: Option<String>,
    /// The maximum number of sessions.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

/// Sessions, or a page of them.
#[derive(Serialize, JsonSchema)]
struct Sessions {
    items: Vec<SessionView>,
    /// Where the next page begins, unless this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<SessionsQuery>,
) -> Fallible<Json<Sessions>> {
    let limit = limit(query.limit)?;
    for (field, text) in [("q", &query.q), ("after", &query.after)] {
        if text.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TITLE) {
            return Err(ApiError::invalid(field, "this can have at most 200 characters"));
        }
    }
    let said = query.q.as_deref().map(tally::searched).filter(|said| !said.is_empty());
    let filter =
        Filter { contains: said.map(|said| ("search".to_owned(), said)), ..seen_by(&caller) };
    let by = Some("place".to_owned());
    let mut page = Page { after: query.after, limit, descending: true, by };
    let found: Vec<Session> = app.sessions.records.list(&filter, &page).await?;
    page.after = found.last().map(|last| last.place.clone());
    page.limit = 1;
    // A store may return fewer than there are, so it is asked whether there are more.
    let has_more =
        page.after.is_some() && !app.store.list(Session::KIND, &filter, &page).await?.is_empty();
    let next = page.after.filter(|_| has_more);
    Ok(Json(Sessions { items: views(&app, filter.owner, found).await?, next }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewSession {
    /// Its title for people.
    #[serde(default)]
    #[schemars(length(min = 1, max = LONGEST_TITLE))]
    title: Option<String>,
    /// The client's key for the session. A request with the same key gets the same session, unchanged.
    #[serde(default)]
    #[schemars(length(min = 1, max = LONGEST_TITLE))]
    key: Option<String>,
    /// The space to which it belongs.
    #[serde(default)]
    space: Option<String>,
    /// The agent's folder, inside the folder of the space, or else inside the server's workspace. These are also the
    /// defaults.
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    model: Option<String>,
    /// `bypassPermissions` only where the operator allows it.
    #[serde(default)]
    #[schemars(with = "Option<Mode>")]
    permission_mode: Option<String>,
    /// In addition to the engine's own system prompt.
    #[serde(default)]
    append_system_prompt: Option<String>,
    /// Whether the agent can create schedules, and sees those of its user.
    #[serde(default)]
    schedules: bool,
}

/// The names of permission modes.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described")]
enum Mode {
    Default,
    AcceptEdits,
    Plan,
    DontAsk,
    BypassPermissions,
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody(new): JsonBody<NewSession>,
) -> Fallible<(StatusCode, Json<SessionView>)> {
    let model = app.model(new.model)?;
    let mode = new.permission_mode.as_deref().map(mode).transpose()?;
    let mut setup = match &new.space {
        Some(space) => {
            app.spaces.begin(&caller, space, Asked { cwd: new.cwd, mode, model }).await?
        }
        None => {
            let cwd = app.folder(new.cwd)?;
            app.spaces.check_free(&cwd).await?;
            Setup { cwd, model, mode, ..Setup::default() }
        }
    };
    setup.append_prompt = new.append_system_prompt;
    setup.schedules = new.schedules;
    let title = new.title.unwrap_or_else(|| "New session".to_owned());
    check_title(&title)?;
    let session = match new.key {
        Some(key) if key.is_empty() || key.chars().count() > LONGEST_TITLE => {
            return Err(ApiError::invalid("key", "the key must have 1 to 200 characters"));
        }
        Some(key) => {
            if app.sessions.keyed(&caller.user, &key).await?.is_none() {
                app.room_for_session(&caller.user).await?;
            }
            app.sessions.by_key(&caller.user, &key, &title, setup).await?
        }
        None => {
            app.room_for_session(&caller.user).await?;
            app.sessions.create(&caller.user, &title, setup).await?
        }
    };
    if session.setup.space != new.space {
        let message = "the session with this key is not in that space";
        return Err(ApiError::conflict("other_space", message).field("key"));
    }
    Ok((StatusCode::CREATED, Json(view(&app, session).await?)))
}

/// Parses a permission mode that engines know.
pub(crate) fn mode(word: &str) -> Fallible<PermissionMode> {
    match serde_json::from_value(Value::String(word.to_owned())) {
        Ok(
            mode @ (PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::Plan
            | PermissionMode::DontAsk
            | PermissionMode::BypassPermissions),
        ) => Ok(mode),
        _ => {
            let modes = "default, acceptEdits, plan, dontAsk or bypassPermissions";
            Err(ApiError::invalid("permissionMode", format!("the permission mode must be {modes}")))
        }
    }
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<SessionView>> {
    let session = readable(&app, &caller, &id).await?;
    Ok(Json(view(&app, session).await?))
}

/// A session that the caller may read: an own one, or one in the caller's space.
pub(super) async fn readable(app: &App, caller: &Caller, id: &str) -> Fallible<Session> {
    let refused = match app.sessions.find(caller, id).await {
        Ok(session) => return Ok(session),
        Err(refused) => refused,
    };
    match app.sessions.records.find::<Session>(id).await? {
        Some((session, _)) if app.spaces.oversees(caller, &session).await? => Ok(session),
        _ => Err(refused),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangeSession {
    #[serde(default)]
    #[schemars(length(min = 1, max = LONGEST_TITLE))]
    title: Option<String>,
    /// Another folder, from the next run: in the same space, or where agents outside of spaces may work.
    #[serde(default)]
    cwd: Option<PathBuf>,
}

/// Other programs may store conversations by folder, as the vendor's does, and would not find this one again.
fn check_movable(config: &Config, session: &Session) -> Fallible<()> {
    let is_program = matches!(config.engine, EngineChoice::Program(_));
    if !is_program || !session.has_conversation() {
        return Ok(());
    }
    let message = "the engine of this server may not find a conversation in another folder";
    Err(ApiError::conflict("cannot_move", message)
        .field("cwd")
        .hint("begin another session in that folder"))
}

pub(super) fn check_title(title: &str) -> Fallible<()> {
    if title.is_empty() || title.chars().count() > LONGEST_TITLE {
        return Err(ApiError::invalid("title", "the title must have 1 to 200 characters"));
    }
    Ok(())
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(new): JsonBody<ChangeSession>,
) -> Fallible<Json<SessionView>> {
    let session = app.sessions.find(&caller, &id).await?;
    new.title.as_deref().map(check_title).transpose()?;
    if new.cwd.is_some() {
        check_movable(&app.config, &session)?;
    }
    let cwd = match (new.cwd, &session.setup.space) {
        (None, _) => None,
        (Some(cwd), Some(space)) => Some(app.spaces.go_to(&caller, space, cwd).await?),
        (Some(cwd), None) => {
            let cwd = app.folder(Some(cwd))?;
            app.spaces.check_free(&cwd).await?;
            Some(cwd)
        }
    };
    let named = app.sessions.records.update::<Session, ()>(&id, |session| {
        if let Some(title) = &new.title {
            session.call(title);
        }
        if let Some(cwd) = &cwd {
            session.setup.cwd.clone_from(cwd);
        }
        Ok(())
    });
    Ok(Json(view(&app, named.await?.0).await?))
}

async fn close(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<StatusCode> {
    let session = app.sessions.find(&caller, &id).await?;
    app.forget(&session).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AfterQuery {
    /// Only events after this number.
    #[schemars(range(min = 0, max = sse::LAST))]
    pub(super) after: Option<u64>,
}

async fn events(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<AfterQuery>,
    headers: HeaderMap,
) -> Fallible<Response> {
    let session = readable(&app, &caller, &id).await?;
    let after = sse::position(&headers, query.after)?;
    let after = after.max(session.begins);
    let reader = app.sessions.log.reader(&log_writers::stream(&session.id)?, after);
    sse::stream(&app, &caller, reader, Box::new(|it| Rendered { frame: it.sse(), is_last: false }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// Only events after this number.
    #[schemars(range(min = 0, max = sse::LAST))]
    after: Option<u64>,
    /// The maximum number of events.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

/// An event of a session.
#[derive(Serialize, JsonSchema)]
pub(super) struct LogEntry {
    /// Begins with 1. Numbers of deltas that were dropped, because their message is complete, stay unused.
    seq: u64,
    /// Milliseconds since 1970.
    at: i64,
    /// `prompt`, `run`, `message`, `cut_off`, `approval`, `notice`, `state` or `engine`.
    kind: String,
    body: Value,
}

async fn log(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<LogQuery>,
) -> Fallible<Json<Listing<LogEntry>>> {
    let session = readable(&app, &caller, &id).await?;
    let stream = log_writers::stream(&session.id)?;
    let after = sse::number(query.after.unwrap_or(0))?.max(session.begins);
    let found = app.store.read_from(&stream, after, limit(query.limit)?).await?;
    let entry = |event: ostler_store::Event| {
        let body = event.body.to().map_err(error::internal)?;
        Ok(LogEntry { seq: event.seq, at: event.at.as_millis(), kind: event.kind, body })
    };
    Ok(Json(Listing { items: found.into_iter().map(entry).collect::<Fallible<_>>()? }))
}
