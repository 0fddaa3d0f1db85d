//! Coming in: a code for a browser, the cookie it becomes, and the users there are.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing::Listing;
use super::openapi::{Api, Op};
use crate::app::App;
use crate::fault::{ApiError, Fallible};
use crate::security::code;
use crate::security::error::{JsonBody, PathOf};
use crate::security::users::{Caller, Role};

pub(super) fn routes(api: Api) -> Api {
    let enters = "Makes a cookie of a one-time code; for everybody who has one";
    api.on(
        Op::post("/api/codes", "createCode", "A one-time code with which a browser comes in")
            .returns::<Code>(201, "The code; it counts for five minutes"),
        post(create_code),
    )
    .on(
        Op::post("/api/login", "login", enters)
            .takes::<Code>()
            .returns_nothing(204, "The cookie is set"),
        post(login),
    )
    .on(
        Op::post("/api/logout", "logout", "Ends the session of a browser")
            .returns_nothing(204, "The cookie is worth nothing any more"),
        post(logout),
    )
    .on(
        Op::get("/api/users", "listUsers", "Everybody beside the owner; for administrators")
            .returns::<Listing<UserView>>(200, "The users"),
        get(users),
    )
    .on(
        Op::post("/api/users", "addUser", "Lets somebody in; for administrators")
            .takes::<NewUser>()
            .returns::<Issued>(201, "The user's token, which is shown this once"),
        post(add_user),
    )
    .on(
        Op::delete(
            "/api/users/{id}",
            "removeUser",
            "Lets somebody in no longer; for administrators",
        )
        .returns_nothing(204, "Gone, with all tokens"),
        delete(remove_user),
    )
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Code {
    code: String,
}

async fn create_code(State(app): State<App>, caller: Caller) -> (StatusCode, Json<Code>) {
    let code = app.guard.browsers.code(caller.grant, Instant::now());
    (StatusCode::CREATED, Json(Code { code: code.expose().to_owned() }))
}

async fn login(State(app): State<App>, JsonBody(said): JsonBody<Code>) -> Fallible<Response> {
    let Some((cookie, _)) = app.guard.browsers.redeem(&said.code, Instant::now()) else {
        return Err(ApiError::unauthenticated("this code is not known, or no longer")
            .hint("ask for a new one: ostler serve prints one, POST /api/codes makes one"));
    };
    let site = &app.guard.site;
    let line = code::set_cookie(&site.cookie, &cookie, site.is_secure());
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, line)]).into_response())
}

async fn logout(State(app): State<App>, headers: HeaderMap) -> Response {
    let site = &app.guard.site;
    let prefix = format!("{}=", site.cookie);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    for cookie in cookies.flat_map(|line| line.split(';')) {
        if let Some(cookie) = cookie.trim().strip_prefix(&prefix) {
            app.guard.browsers.leave(cookie);
        }
    }
    let line = code::clear_cookie(&site.cookie, site.is_secure());
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, line)]).into_response()
}

#[derive(Serialize, JsonSchema)]
struct UserView {
    name: String,
    /// `admin` or `member`.
    role: String,
    /// How many tokens they have.
    tokens: usize,
}

async fn users(State(app): State<App>, caller: Caller) -> Fallible<Json<Listing<UserView>>> {
    caller.require(Role::Admin)?;
    let view = |user: crate::security::users::User| UserView {
        name: user.name,
        role: format!("{:?}", user.role).to_lowercase(),
        tokens: user.tokens.len(),
    };
    Ok(Json(Listing { items: app.guard.users.list().into_iter().map(view).collect() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewUser {
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// `admin` or `member`.
    role: String,
}

#[derive(Serialize, JsonSchema)]
struct Issued {
    name: String,
    token: String,
}

async fn add_user(
    State(app): State<App>,
    caller: Caller,
    JsonBody(new): JsonBody<NewUser>,
) -> Fallible<(StatusCode, Json<Issued>)> {
    caller.require(Role::Admin)?;
    let role = match new.role.as_str() {
        "admin" => Role::Admin,
        "member" => Role::Member,
        _ => return Err(ApiError::invalid("role", "a role is admin or member")),
    };
    app.guard.users.add(&caller, &new.name, role)?;
    let (_, token) = app.guard.users.issue(&caller, &new.name, "first")?;
    let token = token.expose().to_owned();
    Ok((StatusCode::CREATED, Json(Issued { name: new.name, token })))
}

async fn remove_user(
    State(app): State<App>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Fallible<StatusCode> {
    caller.require(Role::Admin)?;
    app.guard.users.remove(&caller, &name)?;
    Ok(StatusCode::NO_CONTENT)
}
