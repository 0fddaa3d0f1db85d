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
use ostler_base::error::ApiError;
use serde_json::json;

use super::guard::Guard;
use super::token::TokenDigest;
use super::users::Caller;

/// The longest time that a connection stays open after its caller was removed, got another role, or lost a token or
/// sign-in. A notification ends it at once. It is also checked this often without one, because a sign-in also expires.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// How often the owner's token file is checked. The operator may replace it by hand, which sends no notification.
const TOKEN_FILE: Duration = Duration::from_millis(500);

/// What a caller was identified by, for checking it again while the connection is open.
#[derive(Clone)]
pub struct Credential {
    pub(super) guard: Arc<Guard>,
    pub(super) caller: Caller,
    /// The digest of the browser's cookie, if the caller did not send a token.
    pub(super) cookie: Option<TokenDigest>,
}

impl Credential {
    /// Refuses a caller who was removed, has another role, or lost the token or sign-in.
    ///
    /// # Errors
    /// With the refusal.
    pub fn check(&self) -> Result<(), ApiError> {
        let Self { guard, caller, cookie } = self;
        let is_signed_in =
            cookie.is_none_or(|cookie| guard.browsers.is_signed_in(&cookie, Instant::now()));
        let is_same = guard.users.caller(&caller.grant).is_some_and(|now| now == *caller);
        if is_signed_in && is_same { Ok(()) } else { Err(signed_out()) }
    }

    /// Takes one message out of the caller's request bucket.
    ///
    /// # Errors
    /// With the time after which another message is allowed.
    pub fn take_request(&self) -> Result<(), Duration> {
        self.guard.requests.take(self.caller.grant, Instant::now())
    }

    /// Waits until [`Credential::check`] refuses.
    pub async fn ended(self) {
        let mut users = self.guard.users.changes().subscribe();
        let mut browsers = self.guard.browsers.changes().subscribe();
        while self.check().is_ok() {
            tokio::select! {
                _ = users.changed() => {}
                _ = browsers.changed() => {}
                () = tokio::time::sleep(ENDS_WITHIN) => {}
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

/// The refusal with which open connections end. Clients recognise its code, and do not reconnect without signing in.
pub(crate) fn signed_out() -> ApiError {
    let message = "you were signed out: your user, role, token or sign-in was changed or revoked";
    ApiError::new(axum::http::StatusCode::UNAUTHORIZED, "signed_out", message)
        .hint("sign in again, or send another token")
}

/// Ends the body of a streamed response when its caller is signed out. Event streams end with a frame that says so.
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

/// AG-UI has an event for failure; other streams get the event `signed_out`.
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

/// Notifies when the owner's token file was replaced by hand. Runs until it is dropped.
pub async fn watch_token_file(guard: Arc<Guard>) {
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

#[cfg(test)]
mod tests {
    use tokio::time::Instant as PausedInstant;

    use super::*;
    use crate::code::Browsers;
    use crate::rate::{Buckets, Rate};
    use crate::site::Site;
    use crate::token::TokenFile;
    use crate::users::{Role, UserFile, Users};

    fn guard(place: &tempfile::TempDir) -> Arc<Guard> {
        let owner = TokenFile::open(place.path().join("token")).unwrap();
        let store = Box::new(UserFile(place.path().join("users.json")));
        let rate = Rate { burst: 10.0, per_second: 10.0 };
        Arc::new(Guard {
            site: Site::new("127.0.0.1:1".parse().unwrap(), &[]),
            users: Arc::new(Users::load(owner, store).unwrap().trusting_members(true)),
            browsers: Browsers::default(),
            requests: Buckets::new(rate),
            failures: Buckets::new(rate),
            strangers: Buckets::new(rate),
        })
    }

    /// How long a connection stays open after a change, by the clock of the test, which stops while any task can run.
    async fn open_for(credential: Credential, change: impl FnOnce()) -> Duration {
        let ended = tokio::spawn(credential.ended());
        tokio::task::yield_now().await;
        let begun = PausedInstant::now();
        change();
        ended.await.unwrap();
        begun.elapsed()
    }

    // Seen to fail with `Users::change` that does not report (a second instead of none), and with `ended` that checks again
    // after 20 seconds (the file that was replaced by hand).
    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_at_once_when_notified_and_within_a_second_otherwise() {
        let place = tempfile::tempdir().unwrap();
        let guard = guard(&place);
        let users = &guard.users;
        let owner = users.caller(&users.owner().token().unwrap().digest()).unwrap();
        let credential = |caller: &Caller| Credential {
            guard: Arc::clone(&guard),
            caller: caller.clone(),
            cookie: None,
        };
        let issue = || {
            let (id, token) = users.issue(&owner, "ada", "").unwrap();
            (id, users.caller(&token.digest()).unwrap())
        };
        users.add(&owner, "ada", Role::Member).unwrap();
        let (id, caller) = issue();
        let revoke = || users.revoke(&owner, "ada", &id).unwrap();
        assert_eq!(open_for(credential(&caller), revoke).await, Duration::ZERO, "token revoked");
        let (_, caller) = issue();
        let raise = || users.set_role(&owner, "ada", Role::Admin).unwrap();
        assert_eq!(open_for(credential(&caller), raise).await, Duration::ZERO, "another role");
        let (_, caller) = issue();
        let remove = || users.remove(&owner, "ada").unwrap();
        assert_eq!(open_for(credential(&caller), remove).await, Duration::ZERO, "removed");
        let replace = || {
            let token = format!("ostler_{}\n", "y".repeat(43));
            ostler_base::private::replace(&place.path().join("token"), token.as_bytes()).unwrap();
        };
        let open = open_for(credential(&owner), replace).await;
        assert!(open <= ENDS_WITHIN && ENDS_WITHIN <= Duration::from_secs(1), "by hand: {open:?}");
    }
}
