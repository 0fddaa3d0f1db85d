//! The middleware around all routes: asks the [`guard`](super::guard), and ends responses whose caller is signed out.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::guard::{Entry, FromStranger, Guard, preflight};
use super::revocation::{self, Credential};

/// Passes a request on to the routes, or refuses it.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    // Before the request is checked: a listed page may also read why it was refused.
    let reader = guard.site.foreign_reader(&parts);
    let is_secure = guard.site.is_secure(&parts.headers);
    let mut response = match guard.judge(&parts, guard.peer(&parts), Instant::now()) {
        Ok(Entry::Preflight) => preflight(),
        Ok(Entry::Public) => {
            parts.extensions.insert(FromStranger);
            next.run(Request::from_parts(parts, body)).await
        }
        Ok(Entry::Caller { caller, cookie }) => {
            let credential = Credential { guard: Arc::clone(&guard), caller, cookie };
            answer(credential, Request::from_parts(parts, body), next).await
        }
        Err(error) => error.into_response(),
    };
    if is_secure {
        let always = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, always);
    }
    if let Some(origin) = reader {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// The response for a caller, which ends when the caller is signed out.
async fn answer(credential: Credential, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    request.extensions_mut().insert(credential.caller.clone());
    request.extensions_mut().insert(credential.clone());
    tokio::select! {
        // First: a request that signs its own caller out gets its response.
        biased;
        response = next.run(request) => {
            revocation::end_with_caller(response, credential, &path)
        }
        () = credential.clone().ended() => revocation::signed_out().into_response(),
    }
}
