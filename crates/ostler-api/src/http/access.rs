//! What is described of the door; [`ostler_door::routes`] has the routes.

use schemars::JsonSchema;
use serde::Serialize;

use super::openapi::{Api, Op};

pub(super) fn describe(api: Api) -> Api {
    let enters = "Makes a cookie of a one-time code; for every browser that has one";
    let code = "A one-time code with which a browser comes in";
    let rotates = "A new token for the owner; the old one is worth nothing from now on";
    let removes = "Removes somebody with all tokens; for administrators";
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
        Op::delete("/api/auth/session", "leave", "Makes the cookie worth nothing")
            .returns_nothing(204, "Gone"),
    )
    .describe(
        Op::get("/api/auth/browsers", "listBrowsers", "Browsers that are in, the last used first")
            .returns::<Browsers>(200, "The browsers"),
    )
    .describe(
        Op::delete("/api/auth/browsers/{id}", "putOutBrowser", "Makes a browser come in again")
            .returns_nothing(204, "It is out"),
    )
    .describe(
        Op::get("/api/users", "listUsers", "Everybody beside the owner; for administrators")
            .returns::<Everybody>(200, "The users"),
    )
    .describe(
        Op::post("/api/users", "addUser", "Adds somebody, who has no token yet")
            .takes::<NewUser>()
            .returns::<User>(201, "The user"),
    )
    .describe(
        Op::patch("/api/users/{name}", "changeUser", "Gives somebody another role")
            .takes::<Change>()
            .returns_nothing(204, "Changed"),
    )
    .describe(Op::delete("/api/users/{name}", "removeUser", removes).returns_nothing(204, "Gone"))
    .describe(
        Op::delete("/api/users/{name}/tokens/{id}", "revokeToken", "Takes a token back")
            .returns_nothing(204, "Taken back"),
    )
    .describe(
        Op::post("/api/users/{name}/tokens", "issueToken", "A new token, shown this once")
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
    /// Sent with every request in addition to the cookie, as `X-Ostler-Page-Key`; a WebSocket offers the protocol
    /// `ostler.page-key.` with the key behind it, beside `ostler`.
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

/// A browser that is in. Times are in milliseconds since 1970.
#[derive(Serialize, JsonSchema)]
struct Browser {
    id: String,
    user: String,
    /// What people know it by.
    label: String,
    made: u64,
    used: u64,
    /// When it has to come in again, if it is not used before.
    expires: u64,
    /// Whether it is the one that asks.
    current: bool,
}

#[derive(Serialize, JsonSchema)]
struct Everybody {
    users: Vec<User>,
}

#[derive(Serialize, JsonSchema)]
struct User {
    /// What the user's records belong to. It is not the name if that was used before.
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

/// There is one owner, who cannot be made.
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
