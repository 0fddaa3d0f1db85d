//! The endpoint as a part of this server: its callers are those the guard lets in, its agents those of the operator.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use ostler::Options;
use tokio_util::sync::CancellationToken;

use super::{AgUi, Caller, Config as AgUiConfig};
use crate::config::Config;
use crate::runs::options;
use crate::runs::record::{Session, Setup};
use crate::security::users;

/// The routes, and the endpoint behind them.
pub(crate) fn mount(config: &Arc<Config>, stopping: CancellationToken) -> (AgUi, Router) {
    let endpoint = AgUi::new(settings(config), stopping);
    let router = endpoint.router().layer(axum::middleware::from_fn(name_caller));
    (endpoint, router)
}

fn settings(config: &Arc<Config>) -> AgUiConfig {
    let limits = &config.limits;
    let (max_runs, max_body, idle) = (limits.concurrent_runs, limits.body, limits.idle);
    let run = limits.run;
    let for_caller = Arc::clone(config);
    let mut settings = AgUiConfig::new(move |caller| agent(&for_caller, caller));
    settings.max_runs = max_runs;
    settings.max_body = max_body;
    settings.idle_limit = idle;
    settings.waiting_limit = limits.approval;
    settings.run_limit = run.unwrap_or(settings.run_limit);
    settings
}

/// What an agent for a caller works with.
fn agent(config: &Config, caller: &str) -> Options {
    let setup = Setup { cwd: config.workspace.clone(), ..Setup::default() };
    let session = Session {
        id: String::new(),
        owner: caller.to_owned(),
        title: String::new(),
        key: None,
        created: 0,
        engine_session: None,
        setup,
    };
    options::of(config, &session, None)
}

/// Says to the endpoint who calls, as the guard has found.
async fn name_caller(mut request: Request, next: Next) -> Response {
    if let Some(caller) = request.extensions().get::<users::Caller>() {
        let caller = Caller(caller.user.clone());
        request.extensions_mut().insert(caller);
    }
    next.run(request).await
}
