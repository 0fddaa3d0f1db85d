//! Everything the server does over HTTP.

mod access;
mod approvals;
pub(crate) mod listing;
pub(crate) mod openapi;
mod page;
mod runs;
mod sessions;
mod spoken;
pub(crate) mod sse;
mod status;
mod ws;

use axum::Router;
use serde_json::Value;

use self::openapi::Api;
use crate::app::App;
use crate::security::error::{no_such_method, no_such_path};

/// All routes, and the document that describes them.
pub(crate) fn routes() -> (Router<App>, Value) {
    let api = [access::routes, sessions::routes, runs::routes, approvals::routes, status::routes]
        .into_iter()
        .fold(Api::new(), |api, routes| routes(api));
    let (router, document) = api.finish();
    let router = router
        .merge(page::routes())
        .route("/api/ws", axum::routing::get(ws::open))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method);
    (router, document)
}
