//! The description of the door's routes; [`ostler_door::routes`] has the routes.

use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::{Api, Op};

pub(super) fn describe(api: Api) -> Api {
    let enters = "Signs a browser in: exchanges a one-time code for a cookie";
    let code = "A one-time code with which a browser signs in";
    let rotates = "A new token for the owner; the old one is invalid from now on";
    let removes = "Removes a user with all tokens; for administrators";
    api.describe(
        Op::get("/api/auth/me", "me", "Who the caller is").returns::<Me>(200, "The caller"),
    )
    .describe(
        Op::post("/api/auth/code", "createCode", code)
            .takes::<Nothing>()
            .returns::<Code>(200, "The code"),
    )
    .describe(
        Op::post("/api/auth/token/rotate", "rotateToken", rotates)
            .takes::<Nothing>()
            .returns::<Shown>(200, "The token"),
    )
    .describe(
        Op::post("/api/auth/session", "enter", enters)
            .public()
            .takes::<Entering>()
            .returns::<SignedIn>(200, "The cookie is set; the key is for the page"),
    )
    .describe(
        Op::delete("/api/auth/session", "leave", "Signs the browser out")
            .returns_nothing(204, "Gone"),
    )
    .describe(
        Op::get("/api/auth/browsers", "listBrowsers", "Signed-in browsers, the last used first")
            .returns::<Browsers>(200, "The browsers"),
    )
    .describe(
        Op::delete("/api/auth/browsers/{id}", "putOutBrowser", "Signs a browser out")
            .returns_nothing(204, "Signed out"),
    )
    .describe(
        Op::get("/api/users", "listUsers", "All users except the owner; for administrators")
            .returns::<UserList>(200, "The users"),
    )
    .describe(
        Op::post("/api/users", "addUser", "Adds a user, without a token")
            .takes::<NewUser>()
            .returns::<User>(201, "The user"),
    )
    .describe(
        Op::patch("/api/users/{name}", "changeUser", "Changes the role of a user")
            .takes::<Change>()
            .returns_nothing(204, "Changed"),
    )
    .describe(Op::delete("/api/users/{name}", "removeUser", removes).returns_nothing(204, "Gone"))
    .describe(
        Op::delete("/api/users/{name}/tokens/{id}", "revokeToken", "Revokes a token")
            .returns_nothing(204, "Revoked"),
    )
    .describe(
        Op::post("/api/users/{name}/tokens", "issueToken", "A new token, shown only this once")
            .takes::<Label>()
            .returns::<Shown>(201, "The token"),
    )
}

#[derive(Serialize, JsonSchema)]
struct Me {
    user: String,
    role: Role,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignedIn {
    user: String,
    role: Role,
    /// Sent with every request in addition to the cookie, as `X-Ostler-Page-Key`. A WebSocket offers the protocol
    /// `ostler.page-key.` followed by the key, in addition to `ostler`.
    page_key: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only described")]
enum Role {
    Member,
    Admin,
    Owner,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Code {
    code: String,
    expires_in_seconds: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Entering {
    code: String,
}

#[derive(Serialize, JsonSchema)]
struct Browsers {
    items: Vec<Browser>,
}

/// A signed-in browser. Times are in milliseconds since 1970.
#[derive(Serialize, JsonSchema)]
struct Browser {
    id: String,
    user: String,
    /// Its name for people.
    label: String,
    made: u64,
    used: u64,
    /// When it has to sign in again, if it is not used before.
    expires: u64,
    /// Whether it is the browser that sends this request.
    current: bool,
}

#[derive(Serialize, JsonSchema)]
struct UserList {
    users: Vec<User>,
}

#[derive(Serialize, JsonSchema)]
struct User {
    /// The id to which the user's records belong. It differs from the name if another user had that name before.
    id: String,
    name: String,
    role: Role,
    tokens: Vec<KeptToken>,
}

#[derive(Serialize, JsonSchema)]
struct KeptToken {
    id: String,
    label: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct NewUser {
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9._-]{0,63}$"))]
    name: String,
    role: NewRole,
}

/// There is one owner, and the role cannot be given.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only described")]
enum NewRole {
    Member,
    Admin,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Change {
    role: NewRole,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Label {
    #[serde(default)]
    label: String,
}

#[derive(Serialize, JsonSchema)]
struct Shown {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    token: String,
}
