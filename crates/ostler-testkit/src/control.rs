//! Endpoints under `/__scripted` through which tests in other languages inspect and control the server.

use axum::extract::{Query, State as Shared};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::journal::{Failure, FailureKind};
use crate::record::RecordedRequest;
use crate::rulebook::Rulebook;
use crate::script::Script;
use crate::state::State;

/// The control endpoints; they are not recorded.
pub(crate) fn routes() -> Router<State> {
    Router::new()
        .route("/__scripted/requests", get(requests))
        .route("/__scripted/unmatched", get(unmatched))
        .route("/__scripted/failures", get(failures).delete(take_failures))
        .route("/__scripted/script", post(change_script))
        .route("/__scripted/release", post(release))
        .route("/__scripted/reached", post(reached))
}

async fn requests(Shared(state): Shared<State>) -> Json<Vec<RecordedRequest>> {
    Json(state.journal.requests())
}

async fn unmatched(Shared(state): Shared<State>) -> Json<Vec<Failure>> {
    let failures = state.journal.failures();
    Json(failures.into_iter().filter(|failure| failure.kind == FailureKind::Unmatched).collect())
}

async fn failures(Shared(state): Shared<State>) -> Json<Vec<Failure>> {
    Json(state.journal.failures())
}

/// Returns the failures and clears the list, for tests that cause them on purpose.
async fn take_failures(Shared(state): Shared<State>) -> Json<Vec<Failure>> {
    Json(state.journal.take_failures())
}

/// Replaces the script, or adds to it with `?mode=append`. Replacing resets the counts of uses.
async fn change_script(
    Shared(state): Shared<State>,
    Query(change): Query<ScriptChange>,
    json: String,
) -> Answer {
    let script =
        Script::from_json(&json).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let mut rulebook = state.rulebook();
    match change.mode {
        ScriptMode::Replace => *rulebook = Rulebook::new(script),
        ScriptMode::Append => rulebook.append(script),
    }
    Ok(Json(json!({})))
}

async fn release(Shared(state): Shared<State>, Json(gate): Json<NamedGate>) -> Json<Value> {
    state.gates.named(&gate.gate).release();
    Json(json!({}))
}

/// Answers when `arrivals` responses have reached the gate, or with 408 after a timeout.
async fn reached(Shared(state): Shared<State>, Json(wanted): Json<WantedArrivals>) -> Answer {
    let gate = state.gates.named(&wanted.gate);
    if gate.is_reached_by(wanted.arrivals).await {
        Ok(Json(json!({"arrivals": gate.arrivals()})))
    } else {
        Err((
            StatusCode::REQUEST_TIMEOUT,
            format!("gate {:?} was reached {} times", wanted.gate, gate.arrivals()),
        ))
    }
}

type Answer = Result<Json<Value>, (StatusCode, String)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptChange {
    #[serde(default)]
    mode: ScriptMode,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScriptMode {
    #[default]
    Replace,
    Append,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedGate {
    gate: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedArrivals {
    gate: String,
    #[serde(default = "once")]
    arrivals: usize,
}

fn once() -> usize {
    1
}
