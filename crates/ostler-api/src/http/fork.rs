//! Forks of sessions over HTTP.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use ostler_base::error::{Fallible, JsonBody, PathOf};
use ostler_core::app::App;
use ostler_core::runs::fork;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::Deserialize;

use super::openapi::{Api, Op};
use super::session_view::{SessionView, view};
use super::sessions::{LONGEST_TITLE, check_title};

pub(super) fn routes(api: Api) -> Api {
    let forks =
        "A new session that continues from a place in this one; both work in the same folder";
    api.on(
        Op::post("/api/sessions/{id}/fork", "forkSession", forks)
            .takes::<ForkRequest>()
            .returns::<SessionView>(201, "The new session"),
        post(fork),
    )
}

/// Where the copy ends; at the end of the conversation if both are absent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkRequest {
    /// Before the prompt of this run.
    #[serde(default)]
    before: Option<String>,
    /// After this message of the agent, by its `uuid`.
    #[serde(default)]
    message: Option<String>,
    /// The title of the new session.
    #[serde(default)]
    #[schemars(length(min = 1, max = LONGEST_TITLE))]
    title: Option<String>,
}

async fn fork(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(wanted): JsonBody<ForkRequest>,
) -> Fallible<(StatusCode, Json<SessionView>)> {
    let source = app.sessions.find(&caller, &id).await?;
    wanted.title.as_deref().map(check_title).transpose()?;
    let place = fork::place(wanted.before, wanted.message)?;
    let mut setup = source.setup.clone();
    // A user who sees a session may not be allowed to work in its folder.
    setup.cwd = match &setup.space {
        Some(space) => app.spaces.go_to(&caller, space, setup.cwd).await?,
        None => {
            app.spaces.check_free(&setup.cwd).await?;
            setup.cwd
        }
    };
    let title = wanted.title.as_deref();
    app.room_for_session(&caller.user).await?;
    let new = app.sessions.fork(&source, &caller.user, setup, title, place).await?;
    Ok((StatusCode::CREATED, Json(view(&app, new).await?)))
}
