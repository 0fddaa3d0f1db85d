//! Backups over HTTP, for the owner.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use ostler_base::error::{self, Fallible};
use ostler_core::app::App;
use ostler_core::nightly;
use ostler_door::users::{Caller, Role};
use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::{Api, Op};

pub(super) fn routes(api: Api) -> Api {
    let makes = "Writes a consistent copy of the database to a file on the server; for the owner";
    api.on(
        Op::post("/api/backup", "backUp", makes).returns::<Backup>(201, "The backup"),
        post(back_up),
    )
}

/// A backup that was made.
#[derive(Serialize, JsonSchema)]
struct Backup {
    /// Its path on the server.
    file: String,
    bytes: u64,
}

async fn back_up(State(app): State<App>, caller: Caller) -> Fallible<(StatusCode, Json<Backup>)> {
    // It contains the conversations of all users.
    caller.require(Role::Owner)?;
    let file = nightly::back_up_now(&app).await?;
    let bytes = std::fs::metadata(&file).map_err(error::internal)?.len();
    Ok((StatusCode::CREATED, Json(Backup { file: file.display().to_string(), bytes })))
}
