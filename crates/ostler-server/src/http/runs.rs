//! Runs over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Deserialize;

use super::listing::Listing;
use super::openapi::{Api, Op};
use crate::app::App;
use crate::fault::Fallible;
use crate::runs::NewRun;
use crate::runs::record::Run;
use crate::security::error::{JsonBody, PathOf};
use crate::security::users::Caller;

pub(super) fn routes(api: Api) -> Api {
    let starts = "The run; what comes of it is in the session's log";
    api.on(
        Op::get("/api/sessions/{id}/runs", "listRuns", "The runs of a session, oldest first")
            .returns::<Listing<Run>>(200, "The runs"),
        get(list),
    )
    .on(
        Op::post("/api/sessions/{id}/runs", "startRun", "Has a prompt answered")
            .takes::<Prompt>()
            .returns::<Run>(202, starts),
        post(start),
    )
    .on(Op::get("/api/runs/{id}", "getRun", "A run").returns::<Run>(200, "The run"), get(show))
    .on(
        Op::post("/api/runs/{id}/cancel", "cancelRun", "Has a run end, by force if need be")
            .returns::<Run>(202, "The run; it is over when its log says so"),
        post(cancel),
    )
    .on(
        Op::post("/api/runs/{id}/resume", "resumeRun", "Takes up a run that was interrupted")
            .returns::<Run>(202, starts),
        post(resume),
    )
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Listing<Run>>> {
    app.hub.find(&caller, &id).await?;
    Ok(Json(Listing { items: app.hub.runs_of(&id).await? }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Prompt {
    #[schemars(length(min = 1))]
    prompt: String,
    /// Whether it is said in the run that works now, if there is one, instead of in a run of its own.
    #[serde(default)]
    push: bool,
}

async fn start(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(new): JsonBody<Prompt>,
) -> Fallible<(StatusCode, Json<Run>)> {
    let session = app.hub.find(&caller, &id).await?;
    let run =
        app.hub.submit(&session, NewRun { pushes: new.push, ..NewRun::text(new.prompt) }).await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Run>> {
    Ok(Json(app.hub.find_run(&caller, &id).await?))
}

async fn cancel(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<(StatusCode, Json<Run>)> {
    Ok((StatusCode::ACCEPTED, Json(app.hub.cancel(&caller, &id).await?)))
}

async fn resume(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<(StatusCode, Json<Run>)> {
    Ok((StatusCode::ACCEPTED, Json(app.hub.resume(&caller, &id).await?)))
}
