//! The routes of the door itself: codes, cookies and users.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, patch, post};
use axum::{Json, Router};
use ostler_base::error::{ApiError, JsonBody, PathOf, shown};
use serde::{Deserialize, Serialize};

use super::browsers::{Cookie, SignIn, Times, label};
use super::code::{CODE_LASTS, clear_cookie, set_cookie};
use super::guard::{Guard, one_cookie};
use super::site::Site;
use super::token::TokenDigest;
use super::users::{Caller, Role, User};

/// The path that exchanges a code for a cookie.
const SESSION: &str = "/auth/session";

/// Opens the paths that are needed for signing in.
pub fn open(site: Site, prefix: &str) -> Site {
    site.public(Method::POST, &format!("{prefix}{SESSION}"))
}

/// The routes, for use below a prefix and behind the guard.
pub fn routes(guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/auth/me", get(me))
        .route("/auth/code", post(code))
        .route(SESSION, post(enter).delete(leave))
        .route("/auth/browsers", get(browsers))
        .route("/auth/browsers/{id}", delete(put_out))
        .route("/auth/token/rotate", post(rotate))
        .route("/users", get(list).post(add))
        .route("/users/{name}", patch(change).delete(remove))
        .route("/users/{name}/tokens", post(issue))
        .route("/users/{name}/tokens/{id}", delete(revoke))
        .with_state(guard)
}

#[derive(Serialize)]
struct Me {
    user: String,
    role: Role,
}

async fn me(State(guard): State<Arc<Guard>>, caller: Caller) -> Json<Me> {
    Json(Me { user: guard.users.name_of(&caller.user), role: caller.role })
}

/// What a page receives when it signs in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignedIn {
    user: String,
    role: Role,
    /// Sent with every request in addition to the cookie. It is shown only this once.
    page_key: String,
}

/// A body without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmptyBody {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Code {
    code: String,
    expires_in_seconds: u64,
}

async fn code(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    _: JsonBody<EmptyBody>,
) -> Json<Code> {
    let code = guard.browsers.code(caller.grant, Instant::now());
    Json(Code { code: code.expose().to_owned(), expires_in_seconds: CODE_LASTS.as_secs() })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entering {
    code: String,
}

async fn enter(
    State(guard): State<Arc<Guard>>,
    request: Parts,
    JsonBody(Entering { code }): JsonBody<Entering>,
) -> Result<Response, ApiError> {
    let headers = &request.headers;
    let now = Instant::now();
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let entered = guard.browsers.redeem(&code, &label(agent.unwrap_or_default()), now);
    let entered = entered.and_then(|(sign_in, grant)| Some((sign_in, guard.users.caller(&grant)?)));
    let Some((SignIn { cookie, page_key }, caller)) = entered else {
        return Err(guard.unknown(guard.peer(&request), now));
    };
    let line = set_cookie(&guard.site.cookie, &cookie, guard.site.is_secure(headers));
    let signed_in = SignedIn {
        user: guard.users.name_of(&caller.user),
        role: caller.role,
        page_key: page_key.expose().to_owned(),
    };
    Ok(([(header::SET_COOKIE, line)], Json(signed_in)).into_response())
}

async fn leave(
    State(guard): State<Arc<Guard>>,
    _: Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(cookie) = one_cookie(&headers, &guard.site.cookie)? {
        guard.browsers.leave(cookie).map_err(unwritten)?;
    }
    let line = clear_cookie(&guard.site.cookie, guard.site.is_secure(&headers));
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, line)]).into_response())
}

/// A signed-in browser.
#[derive(Serialize)]
struct ListedBrowser {
    id: String,
    user: String,
    label: String,
    made: u64,
    used: u64,
    expires: u64,
    current: bool,
}

#[derive(Serialize)]
struct ListedBrowsers {
    items: Vec<ListedBrowser>,
}

async fn browsers(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Json<ListedBrowsers>, ApiError> {
    let own = one_cookie(&headers, &guard.site.cookie)?.map(TokenDigest::of);
    let listed = |(digest, cookie): (TokenDigest, Cookie)| {
        // A browser whose token was revoked is no longer signed in.
        let user = guard.users.caller(&cookie.grant)?.user;
        if !caller.may_see(&user) {
            return None;
        }
        let user = guard.users.name_of(&user);
        let Times { made, used, expires } = cookie.times();
        let (id, label, current) = (cookie.id, cookie.label, Some(digest) == own);
        Some(ListedBrowser { id, user, label, made, used, expires, current })
    };
    let all = guard.browsers.cookies.list(Instant::now()).into_iter().filter_map(listed);
    Ok(Json(ListedBrowsers { items: all.collect() }))
}

async fn put_out(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<StatusCode, ApiError> {
    let all = guard.browsers.cookies.list(Instant::now());
    let found = all.into_iter().find(|(_, cookie)| {
        let user = guard.users.caller(&cookie.grant).map(|it| it.user);
        cookie.id == id && user.is_some_and(|user| caller.may_see(&user))
    });
    let Some((digest, _)) = found else {
        return Err(ApiError::not_found(format!("there is no browser {}", shown(&id))));
    };
    guard.browsers.cookies.remove(&digest).map_err(unwritten)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The browser is signed out, but the file could not be written.
fn unwritten(error: std::io::Error) -> ApiError {
    tracing::error!(%error, "a browser that was signed out may be signed in again after a restart");
    ApiError::internal()
}

/// A token that is shown only this once.
#[derive(Serialize)]
struct IssuedToken {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    token: String,
}

async fn rotate(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    _: JsonBody<EmptyBody>,
) -> Result<Json<IssuedToken>, ApiError> {
    caller.require(Role::Owner)?;
    let token = guard.users.owner().rotate().map_err(|_| ApiError::internal())?;
    guard.users.changes().notify();
    Ok(Json(IssuedToken { id: None, token: token.expose().to_owned() }))
}

/// A user, without secrets.
#[derive(Serialize)]
struct ListedUser {
    /// The id to which the user's records belong. It differs from the name if another user had that name before.
    id: String,
    name: String,
    role: Role,
    tokens: Vec<ListedToken>,
}

#[derive(Serialize)]
struct ListedToken {
    id: String,
    label: String,
}

impl From<User> for ListedUser {
    fn from(User { id, name, role, tokens }: User) -> Self {
        let tokens =
            tokens.into_iter().map(|token| ListedToken { id: token.id, label: token.label });
        Self { id, name, role, tokens: tokens.collect() }
    }
}

#[derive(Serialize)]
struct UserList {
    users: Vec<ListedUser>,
}

async fn list(State(guard): State<Arc<Guard>>, caller: Caller) -> Json<UserList> {
    let users = guard.users.list().into_iter().filter(|user| caller.may_see(&user.id));
    Json(UserList { users: users.map(ListedUser::from).collect() })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUser {
    name: String,
    role: Role,
}

async fn add(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    JsonBody(NewUser { name, role }): JsonBody<NewUser>,
) -> Result<Response, ApiError> {
    let user = guard.users.add(&caller, &name, role)?;
    Ok((StatusCode::CREATED, Json(ListedUser::from(user))).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    role: Role,
}

async fn change(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    JsonBody(Change { role }): JsonBody<Change>,
) -> Result<StatusCode, ApiError> {
    guard.users.set_role(&caller, &name, role)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Result<StatusCode, ApiError> {
    guard.users.remove(&caller, &name)?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    #[serde(default)]
    label: String,
}

async fn issue(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    JsonBody(NewToken { label }): JsonBody<NewToken>,
) -> Result<Response, ApiError> {
    let (id, token) = guard.users.issue(&caller, &name, &label)?;
    let shown = IssuedToken { id: Some(id), token: token.expose().to_owned() };
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

async fn revoke(
    State(guard): State<Arc<Guard>>,
    caller: Caller,
    PathOf((name, id)): PathOf<(String, String)>,
) -> Result<StatusCode, ApiError> {
    guard.users.revoke(&caller, &name, &id)?;
    Ok(StatusCode::NO_CONTENT)
}
