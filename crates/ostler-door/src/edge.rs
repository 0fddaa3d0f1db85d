//! All guards around an application, in their correct order.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use ostler_base::error::{ApiError, no_such_method, no_such_path};

use super::enter;
use super::guard::Guard;
use super::limits::{self, BodyLimits};
use super::{headers, routes};

/// Puts the guards around an application, and adds the routes of the door below a prefix. The outermost layer adds the
/// headers of the response; then the caller is checked, then the body is read, so that nothing is read for strangers.
pub fn protect(app: Router, prefix: &str, guard: Arc<Guard>, limits: BodyLimits) -> Router {
    let door = routes::routes(Arc::clone(&guard));
    let app = match prefix {
        "" => app.merge(door),
        prefix => app.nest(prefix, door),
    };
    app.fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn(survive))
        // The limit of `BodyLimits` counts, and refuses in the server's format.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::new(limits), limits::check))
        .layer(from_fn_with_state(guard, enter::check))
        .layer(from_fn(headers::add))
}

/// A route that panics is a bug of the server, and must not affect other requests.
async fn survive(request: Request, next: Next) -> Response {
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answer.unwrap_or_else(|_| ApiError::internal().into_response())
}

#[cfg(test)]
mod tests;
