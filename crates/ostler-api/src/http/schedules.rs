//! Schedules over HTTP.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, get, patch, post};
use ostler_base::error::{ApiError, Fallible, JsonBody, OptionalBody, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::model::run::Setup;
use ostler_core::schedules::plan::When;
use ostler_core::schedules::record::{CatchUp, Check, Firing};
use ostler_core::schedules::{Changes, MOST_RETRIES, NewSchedule, ScheduleView};
use ostler_core::spaces::Asked;
use ostler_core::start::Start;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::keyed::KeyBody;
use super::listing::{Listing, PageQuery, limit, seen_by};
use super::names::{named, named_list};
use super::openapi::{Api, Op};
use super::sessions::mode;

pub(super) fn routes(api: Api) -> Api {
    let runs = "Starts it now, independent of its plan; its check runs as usual";
    let log = "The result of each time, newest first";
    api.on(
        Op::get("/api/schedules", "listSchedules", "Schedules")
            .query::<PageQuery>()
            .returns::<Listing<ScheduleView>>(200, "The schedules"),
        get(list),
    )
    .on(
        Op::post("/api/schedules", "createSchedule", "Starts a run at certain times")
            .takes::<ScheduleBody>()
            .returns::<ScheduleView>(201, "The schedule"),
        post(create),
    )
    .on(
        Op::get("/api/schedules/{id}", "getSchedule", "A schedule and its next times")
            .returns::<ScheduleView>(200, "The schedule"),
        get(show),
    )
    .on(
        Op::patch("/api/schedules/{id}", "changeSchedule", "Changes a schedule")
            .takes::<ScheduleChange>()
            .returns::<ScheduleView>(200, "The schedule"),
        patch(change),
    )
    .on(
        Op::delete("/api/schedules/{id}", "removeSchedule", "Deletes a schedule and its log")
            .returns_nothing(204, "Forgotten"),
        delete(remove),
    )
    .on(
        Op::post("/api/schedules/{id}/pause", "pauseSchedule", "Pauses a schedule")
            .returns::<ScheduleView>(200, "The schedule"),
        post(pause),
    )
    .on(
        Op::post("/api/schedules/{id}/resume", "resumeSchedule", "Resumes a paused schedule")
            .returns::<ScheduleView>(200, "The schedule"),
        post(resume),
    )
    .on(
        Op::post("/api/schedules/{id}/run", "runSchedule", runs)
            .may_take::<KeyBody>()
            .returns::<Firing>(202, "The entry of its log"),
        post(run),
    )
    .on(
        Op::get("/api/schedules/{id}/log", "readSchedule", log)
            .query::<LimitQuery>()
            .returns::<Listing<Firing>>(200, "The log"),
        get(entries),
    )
}

/// What to start: a prompt in a new session, a prompt in an existing session, or a task.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StartBody {
    #[serde(default)]
    #[schemars(length(min = 1))]
    prompt: Option<String>,
    /// The session of the prompt; a new one each time if absent.
    #[serde(default)]
    session: Option<String>,
    /// A task to execute instead.
    #[serde(default)]
    task: Option<String>,
    /// For new sessions: the space to which they belong.
    #[serde(default)]
    space: Option<String>,
    /// For new sessions: the agent's folder; the folder of the space or the server's workspace if absent.
    #[serde(default)]
    cwd: Option<PathBuf>,
    /// For new sessions.
    #[serde(default)]
    model: Option<String>,
    /// For new sessions: `default`, `acceptEdits`, `plan`, `dontAsk`, or `bypassPermissions` where the operator allows it.
    #[serde(default)]
    permission_mode: Option<String>,
    /// For new sessions: in addition to the engine's own system prompt.
    #[serde(default)]
    append_system_prompt: Option<String>,
}

impl StartBody {
    /// Parses and checks it with the permissions of the owner, in whose name it starts, also if another user plans it.
    pub(super) async fn read(self, app: &App, owner: &str) -> Fallible<Start> {
        let is_set_up = self.cwd.is_some()
            || self.space.is_some()
            || self.model.is_some()
            || self.permission_mode.is_some()
            || self.append_system_prompt.is_some();
        match (self.prompt, self.session, self.task) {
            (Some(prompt), None, None) => {
                let model = app.model(self.model)?;
                let mode = self.permission_mode.as_deref().map(mode).transpose()?;
                let mut setup = match &self.space {
                    Some(space) => {
                        let asked = Asked { cwd: self.cwd, mode, model };
                        app.spaces.begin(&Caller::on_behalf(owner), space, asked).await?
                    }
                    None => {
                        let cwd = resolved(&app.folder(self.cwd)?)?;
                        app.spaces.check_free(&cwd).await?;
                        Setup { cwd, model, mode, ..Setup::default() }
                    }
                };
                setup.append_prompt = self.append_system_prompt;
                Ok(Start::Prompt { prompt, setup: Box::new(setup) })
            }
            (Some(_), Some(_), None) | (None, None, Some(_)) if is_set_up => {
                let message = "only a prompt in a new session can have space, cwd, model, permissionMode and appendSystemPrompt";
                Err(ApiError::invalid("start", message))
            }
            (Some(prompt), Some(session), None) => Ok(Start::Session { prompt, session }),
            (None, None, Some(task)) => Ok(Start::Task { task }),
            _ => {
                let message = "start needs a prompt, optionally with a session, or a task";
                let hint = "such as {\"prompt\": \"look for new mail\"} or {\"task\": \"task_…\"}";
                Err(ApiError::invalid("start", message).hint(hint))
            }
        }
    }
}

/// The current real path: if it changes until the start, that is noticed.
fn resolved(folder: &Path) -> Fallible<PathBuf> {
    folder.canonicalize().map_err(|error| {
        ApiError::invalid("start.cwd", format!("{} cannot be used: {error}", folder.display()))
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScheduleBody {
    #[schemars(length(min = 1, max = 200))]
    name: String,
    start: StartBody,
    when: When,
    /// What happens to times at which the server was not running.
    #[serde(default)]
    catch_up: CatchUp,
    /// A command that decides each time whether the agent starts. Only the owner can set it.
    #[serde(default)]
    check: Option<Check>,
    /// How often a start is tried again that failed for a temporary reason: after 5 s, then twice as long each time.
    #[serde(default = "retries")]
    #[schemars(range(max = 5))]
    retries: u32,
}

fn retries() -> u32 {
    MOST_RETRIES
}

/// The fields to change; absent ones stay.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScheduleChange {
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    #[serde(default)]
    start: Option<StartBody>,
    #[serde(default)]
    when: Option<When>,
    #[serde(default)]
    catch_up: Option<CatchUp>,
    /// `null` removes the check.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<Check>")]
    check: Option<Option<Check>>,
    #[serde(default)]
    #[schemars(range(max = 5))]
    retries: Option<u32>,
}

/// Distinguishes `null` from an absent field.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Check>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LimitQuery {
    /// The maximum number of entries.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<ScheduleView>>> {
    let found = app.sessions.records.list(&seen_by(&caller), &query.page()?).await?;
    let mut items = Vec::with_capacity(found.len());
    for schedule in found {
        items.push(app.schedules.view(schedule).await?);
    }
    Ok(named_list(&app, items))
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<ScheduleBody>,
) -> Fallible<(StatusCode, Json<ScheduleView>)> {
    let start = body.start.read(&app, &caller.user).await?;
    let new = NewSchedule {
        name: body.name,
        start,
        when: body.when,
        catch_up: body.catch_up,
        check: body.check,
        retries: body.retries,
    };
    Ok((StatusCode::CREATED, named(&app, app.schedules.create(&caller, new).await?)))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<ScheduleView>> {
    let schedule = app.schedules.find(&caller, &id).await?;
    Ok(named(&app, app.schedules.view(schedule).await?))
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<ScheduleChange>,
) -> Fallible<Json<ScheduleView>> {
    let owner = app.schedules.find(&caller, &id).await?.owner;
    let start = match body.start {
        Some(start) => Some(start.read(&app, &owner).await?),
        None => None,
    };
    let changes = Changes {
        name: body.name,
        start,
        when: body.when,
        catch_up: body.catch_up,
        check: body.check,
        retries: body.retries,
    };
    Ok(named(&app, app.schedules.change(&caller, &id, changes).await?))
}

async fn remove(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<StatusCode> {
    app.schedules.remove(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn pause(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<ScheduleView>> {
    Ok(named(&app, app.schedules.pause(&caller, &id).await?))
}

async fn resume(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<ScheduleView>> {
    Ok(named(&app, app.schedules.resume(&caller, &id).await?))
}

async fn run(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    OptionalBody(KeyBody { key }): OptionalBody<KeyBody>,
) -> Fallible<(StatusCode, Json<Firing>)> {
    let firing = app.schedules.run_now(&caller, &id, key.as_deref()).await?;
    Ok((StatusCode::ACCEPTED, named(&app, firing)))
}

async fn entries(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<LimitQuery>,
) -> Fallible<Json<Listing<Firing>>> {
    app.schedules.find(&caller, &id).await?;
    Ok(named_list(&app, app.schedules.log(&id, limit(query.limit)?).await?))
}
