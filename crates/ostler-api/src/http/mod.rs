//! Everything the server does over HTTP.

mod access;
mod approvals;
mod backup;
mod changes;
mod doctor;
mod fork;
mod history;
mod hooks;
mod keyed;
pub(crate) mod listing;
mod mcp_servers;
mod names;
pub(crate) mod openapi;
pub mod page;
mod runs;
mod schedules;
mod session_view;
mod sessions;
mod setup;
mod skills;
mod spaces;
mod spoken;
pub(crate) mod sse;
mod status;
mod tasks;
mod usage;
mod ws;

use axum::Router;
use ostler_core::app::App;
use serde_json::Value;

use self::openapi::Api;

/// All routes, and the document that describes them.
pub fn routes() -> (Router<App>, Value) {
    let parts: [fn(Api) -> Api; 18] = [
        access::describe,
        tasks::routes,
        skills::routes,
        sessions::routes,
        usage::routes,
        fork::routes,
        changes::routes,
        setup::routes,
        spaces::routes,
        mcp_servers::routes,
        runs::routes,
        history::routes,
        backup::routes,
        approvals::routes,
        schedules::routes,
        hooks::routes,
        status::routes,
        doctor::routes,
    ];
    let api = parts.into_iter().fold(Api::new(), |api, routes| routes(api));
    let (router, document) = api.finish();
    let router = router.merge(page::routes()).route("/api/ws", axum::routing::get(ws::open));
    (router, document)
}
