//! Runs over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use ostler_base::error::{Fallible, JsonBody, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::model::run::Run;
use ostler_core::runs::NewRun;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing::{Listing, limit};
use super::names::{named, named_list};
use super::openapi::{Api, Op};
use super::sse;
use crate::agui::run_pages;

pub(super) fn routes(api: Api) -> Api {
    let lists = "The newest runs of a session, or those before an event; oldest first";
    let starts = "The run; its events are in the session's log";
    api.on(
        Op::get("/api/sessions/{id}/runs", "listRuns", lists)
            .query::<RunsQuery>()
            .returns::<Runs>(200, "The runs"),
        get(list),
    )
    .on(
        Op::post("/api/sessions/{id}/runs", "startRun", "Submits a prompt")
            .takes::<Prompt>()
            .returns::<Run>(202, starts),
        post(start),
    )
    .on(Op::get("/api/runs/{id}", "getRun", "A run").returns::<Run>(200, "The run"), get(show))
    .on(
        Op::post("/api/runs/{id}/cancel", "cancelRun", "Cancels a run, by force if necessary")
            .returns::<Run>(202, "The run; it has ended when its log says so"),
        post(cancel),
    )
    .on(
        Op::post("/api/runs/{id}/resume", "resumeRun", "Resumes an interrupted run")
            .returns::<Run>(202, starts),
        post(resume),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    /// Only runs that were submitted before this event: the `earlier` of another response.
    #[schemars(range(min = 0, max = sse::LAST))]
    before: Option<u64>,
    /// The maximum number of runs.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

/// Some runs of a session.
#[derive(Serialize, JsonSchema)]
struct Runs {
    items: Vec<Run>,
    /// The event before which there are more runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<u64>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<RunsQuery>,
) -> Fallible<Json<Runs>> {
    let session = app.sessions.find(&caller, &id).await?;
    let before = query.before.map(sse::number).transpose()?;
    let page = run_pages::page(&app, &session, before, limit(query.limit)?).await?;
    let Json(Listing { items }) = named_list(&app, page.runs);
    Ok(Json(Runs { items, earlier: page.earlier }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Prompt {
    #[schemars(length(min = 1))]
    prompt: String,
    /// Whether the prompt goes to the active run, if there is one, instead of a new run.
    #[serde(default)]
    push: bool,
    /// The client's idempotency key for this prompt. A request that repeats it gets the run that the first one started,
    /// for as long as the session exists, also after a restart. With another prompt it is refused (409).
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    key: Option<String>,
}

async fn start(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(new): JsonBody<Prompt>,
) -> Fallible<(StatusCode, Json<Run>)> {
    let session = app.sessions.find(&caller, &id).await?;
    let new = NewRun { pushes: new.push, key: new.key, ..NewRun::text(new.prompt) };
    let run = app.sessions.submit(&session, new).await?;
    Ok((StatusCode::ACCEPTED, named(&app, run)))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Run>> {
    Ok(named(&app, app.sessions.find_run(&caller, &id).await?))
}

async fn cancel(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<(StatusCode, Json<Run>)> {
    Ok((StatusCode::ACCEPTED, named(&app, app.sessions.cancel(&caller, &id).await?)))
}

async fn resume(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<(StatusCode, Json<Run>)> {
    Ok((StatusCode::ACCEPTED, named(&app, app.sessions.resume(&caller, &id).await?)))
}
