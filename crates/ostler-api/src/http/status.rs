//! The state of the server: for people, for probes and for Prometheus.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ostler_base::error::Fallible;
use ostler_core::app::App;
use ostler_door::users::{Caller, Role};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::openapi::{Api, Op};

pub(super) fn routes(api: Api) -> Api {
    api.on(
        Op::get("/healthz", "health", "Whether the server works; needs no token")
            .public()
            .returns::<Health>(200, "It works"),
        get(health),
    )
    .on(
        Op::get("/metrics", "metrics", "Counters in the text format of Prometheus").returns_text(
            200,
            "text/plain; version=0.0.4; charset=utf-8",
            "The counters",
        ),
        get(metrics),
    )
    .on(
        Op::get("/api/model", "modelHealth", "Whether there is a key for the model; for admins")
            .returns::<ModelHealth>(200, "The state of the key"),
        get(model),
    )
    .on(
        Op::get("/openapi.json", "openapi", "This document").returns::<Value>(200, "The document"),
        get(document),
    )
}

#[derive(Serialize, JsonSchema)]
struct Health {
    status: &'static str,
    version: &'static str,
}

async fn health(State(app): State<App>) -> Response {
    // After a failure the store accepts nothing, so the server cannot work either.
    if let Err(error) = app.store.now().await {
        tracing::error!(%error, "the store does not answer");
        return ostler_base::error::ApiError::unavailable("store", "the store does not answer")
            .into_response();
    }
    (StatusCode::OK, Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }))
        .into_response()
}

/// The state of the access to the model.
#[derive(Serialize, JsonSchema)]
struct ModelHealth {
    /// `ok`, `no key`, or why the key cannot be used.
    status: String,
}

async fn model(State(app): State<App>, caller: Caller) -> Fallible<Json<ModelHealth>> {
    caller.require(Role::Admin)?;
    Ok(Json(ModelHealth { status: app.proxy.health().await }))
}

async fn metrics(State(app): State<App>, caller: Caller) -> Fallible<Response> {
    caller.require(Role::Admin)?;
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, app.metrics.text()).into_response())
}

async fn document(State(app): State<App>) -> Json<Value> {
    Json(app.document.clone())
}
