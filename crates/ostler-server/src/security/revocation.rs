//! Ends open connections when their caller may no longer use the server.
//!
//! A request is checked when it arrives. A socket, an event stream or a long request outlives that check, so each one keeps
//! a [`Credential`] and ends as soon as the user is removed, gets another role, or loses the token or the sign-in that let
//! the request in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::Response;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;

use super::error::ApiError;
use super::guard::Guard;
use super::token::TokenDigest;
use super::users::Caller;

/// How often an open connection is checked although nothing was reported: a sign-in also ends by its age.
const RECHECK: Duration = Duration::from_secs(20);
/// How often the owner's token file is looked at. Somebody may replace it by hand, which nothing reports.
const TOKEN_FILE: Duration = Duration::from_millis(500);

/// Tells open connections that users, tokens or sign-ins have changed.
#[derive(Debug, Default)]
pub(crate) struct Changes(watch::Sender<u64>);

impl Changes {
    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// What let a caller in, for checking it again while the connection is open.
#[derive(Clone)]
pub(crate) struct Credential {
    pub(super) guard: Arc<Guard>,
    pub(super) caller: Caller,
    /// The digest of the browser's cookie, if it was not a token.
    pub(super) cookie: Option<TokenDigest>,
}

impl Credential {
    /// Refuses a caller who was removed, has another role, or lost the token or sign-in.
    ///
    /// # Errors
    /// With the refusal.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        let Self { guard, caller, cookie } = self;
        let is_signed_in =
            cookie.is_none_or(|cookie| guard.browsers.is_signed_in(&cookie, Instant::now()));
        let is_same = guard.users.caller(&caller.grant).is_some_and(|now| now == *caller);
        if is_signed_in && is_same { Ok(()) } else { Err(signed_out()) }
    }

    /// Takes one message out of the caller's request bucket.
    ///
    /// # Errors
    /// With the time after which there will be room for one.
    pub(crate) fn take_request(&self) -> Result<(), Duration> {
        self.guard.requests.take(self.caller.grant, Instant::now())
    }

    /// Waits until [`Credential::check`] refuses.
    pub(crate) async fn ended(self) {
        let mut users = self.guard.users.changes().subscribe();
        let mut browsers = self.guard.browsers.changes().subscribe();
        while self.check().is_ok() {
            tokio::select! {
                _ = users.changed() => {}
                _ = browsers.changed() => {}
                () = tokio::time::sleep(RECHECK) => {}
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Credential {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let credential = parts.extensions.get::<Self>().cloned();
        credential.ok_or_else(|| ApiError::unauthenticated("this needs a token"))
    }
}

/// The refusal that open connections end with. Clients know it by its code, and do not connect again without signing in.
pub(crate) fn signed_out() -> ApiError {
    let message =
        "you were signed out: your user, role, token or sign-in was changed or taken back";
    ApiError::new(axum::http::StatusCode::UNAUTHORIZED, "signed_out", message)
        .hint("sign in again, or send another token")
}

/// Ends the body of a streamed answer when its caller is signed out. Event streams end with a frame that says so.
pub(super) fn end_with_caller(response: Response, credential: Credential, path: &str) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_events = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let last = is_events.then(|| last_frame(path));
    let ended: BoxFuture<'static, ()> = Box::pin(credential.ended());
    let pieces = body.into_data_stream();
    let guarded = futures::stream::unfold(Some((pieces, ended)), move |state| {
        let last = last.clone();
        async move {
            let (mut pieces, mut ended) = state?;
            tokio::select! {
                biased;
                () = &mut ended => {
                    let cut_off = || axum::Error::new(std::io::Error::other("signed out"));
                    Some((last.ok_or_else(cut_off), None))
                }
                piece = pieces.next() => Some((piece?, Some((pieces, ended)))),
            }
        }
    });
    Response::from_parts(parts, Body::from_stream(guarded))
}

/// AG-UI has an event for failure; other streams get an event of their own name.
fn last_frame(path: &str) -> Bytes {
    let error = signed_out();
    let detail = error.detail();
    let frame = match path.starts_with("/agui") {
        true => {
            let event =
                json!({"type": "RUN_ERROR", "message": detail.message, "code": detail.code});
            format!("data: {event}\n\n")
        }
        false => {
            let data = json!({"type": "error", "error": detail});
            format!("event: signed_out\ndata: {data}\n\n")
        }
    };
    frame.into()
}

/// Reports when the owner's token file was replaced by hand. Runs until it is dropped.
pub(crate) async fn watch_token_file(guard: Arc<Guard>) {
    let mut before = guard.users.owner().stamp();
    loop {
        tokio::time::sleep(TOKEN_FILE).await;
        let now = guard.users.owner().stamp();
        if now != before {
            before = now;
            guard.users.changes().notify();
        }
    }
}
