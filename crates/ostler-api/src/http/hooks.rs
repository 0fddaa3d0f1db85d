//! Hooks over HTTP: created by their owners, called by other programs.

use std::time::Instant;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{delete, get, post};
use ostler_base::error::{ApiError, Fallible, JsonBody, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::hooks::record::{Hook, HookView};
use ostler_core::hooks::{LONGEST, Request};
use ostler_door::guard::network;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing::{Listing, PageQuery, seen_by};
use super::names::{named, named_list};
use super::openapi::{Api, Op};
use super::schedules::StartBody;

pub(super) fn routes(api: Api) -> Api {
    let calls =
        "Starts the run of a hook; for other programs, with a signature in place of a token";
    api.on(
        Op::get("/api/hooks", "listHooks", "Hooks")
            .query::<PageQuery>()
            .returns::<Listing<HookView>>(200, "The hooks, without their secrets"),
        get(list),
    )
    .on(
        Op::post("/api/hooks", "createHook", "Lets another program start a run")
            .takes::<HookBody>()
            .returns::<HookView>(201, "The hook with its secret, which is not shown again"),
        post(create),
    )
    .on(
        Op::get("/api/hooks/{id}", "getHook", "A hook").returns::<HookView>(200, "The hook"),
        get(show),
    )
    .on(
        Op::delete("/api/hooks/{id}", "removeHook", "Deletes a hook; it can no longer be called")
            .returns_nothing(204, "Forgotten"),
        delete(remove),
    )
    .on(
        Op::post("/api/hooks/{id}", "callHook", calls)
            .takes::<serde_json::Value>()
            .returns::<Called>(202, "The started run"),
        post(call),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HookBody {
    #[schemars(length(min = 1, max = 200))]
    name: String,
    start: StartBody,
    /// The address to which the result is sent when the run ends, signed with the same secret.
    #[serde(default)]
    callback: Option<String>,
}

/// The started run.
#[derive(Serialize, JsonSchema)]
struct Called {
    run: String,
    session: String,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<HookView>>> {
    let found: Vec<Hook> = app.sessions.records.list(&seen_by(&caller), &query.page()?).await?;
    Ok(named_list(&app, found.into_iter().map(Hook::view).collect()))
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<HookBody>,
) -> Fallible<(StatusCode, Json<HookView>)> {
    let start = body.start.read(&app, &caller.user).await?;
    let made = app.hooks.create(&caller, body.name, start, body.callback).await?;
    Ok((StatusCode::CREATED, named(&app, made)))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<HookView>> {
    Ok(named(&app, app.hooks.find(&caller, &id).await?.view()))
}

async fn remove(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<StatusCode> {
    app.hooks.remove(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn call(
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    request: Parts,
    body: Bytes,
) -> Fallible<(StatusCode, Json<Called>)> {
    if body.len() > LONGEST {
        let message = format!("a call can have at most {LONGEST} bytes");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message));
    }
    let text = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
    let time = text("x-ostler-timestamp").and_then(|time| time.parse().ok()).unwrap_or(0);
    let signature = text("x-ostler-signature").unwrap_or_default();
    let called = app.hooks.call(&id, Request { time, signature, body: &body }).await;
    let run = called.map_err(|error| {
        match app.guard.peer(&request) {
            // An address with wrong signatures has to wait.
            Some(peer) if error.status() == StatusCode::UNAUTHORIZED => {
                let wait = app.guard.failures.take(network(peer), Instant::now());
                match wait {
                    Ok(()) => error,
                    Err(wait) => {
                        ApiError::too_many("too many wrong signatures from this address", wait)
                    }
                }
            }
            _ => error,
        }
    })?;
    Ok((StatusCode::ACCEPTED, Json(Called { run: run.id, session: run.session })))
}
