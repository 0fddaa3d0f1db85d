//! Spaces over HTTP.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, patch, post, put};
use ostler_base::error::{ApiError, Fallible, JsonBody, Object, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::model::policy::Policy;
use ostler_core::model::space::{MemberRole, Space};
use ostler_core::spaces::access::SpaceRole;
use ostler_core::spaces::memory::Memory;
use ostler_core::spaces::mounts::Root;
use ostler_core::spaces::{Change, NewSpace};
use ostler_door::users::{Caller, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing::{Listing, PageQuery};
use super::names::{named, named_list};
use super::openapi::{Api, Op};
use super::session_view::{SessionView, views};

pub(super) fn routes(api: Api) -> Api {
    memories(people(places(api)))
}

fn places(api: Api) -> Api {
    let ends =
        "Deletes a space and ends its runs; its private folder is moved aside; for its owner";
    api.on(
        Op::get("/api/spaces", "listSpaces", "Spaces in which the caller has a role")
            .query::<PageQuery>()
            .returns::<Listing<Space>>(200, "The spaces"),
        get(list),
    )
    .on(
        Op::post("/api/spaces", "createSpace", "Creates a space, which belongs to the caller")
            .takes::<NewSpaceBody>()
            .returns::<Space>(201, "The space"),
        post(create),
    )
    .on(
        Op::get("/api/spaces/{id}", "getSpace", "A space").returns::<Space>(200, "The space"),
        get(show),
    )
    .on(
        Op::patch("/api/spaces/{id}", "changeSpace", "Changes a space; for its admins")
            .takes::<ChangeBody>()
            .returns::<Space>(200, "The space"),
        patch(change),
    )
    .on(Op::delete("/api/spaces/{id}", "endSpace", ends).returns_nothing(204, "Gone"), delete(end))
    .on(
        Op::post("/api/spaces/{id}/mounts", "addMount", "Shows agents another folder; for admins")
            .takes::<NewMount>()
            .returns::<Space>(201, "The space"),
        post(add_mount),
    )
    .on(
        Op::delete("/api/spaces/{id}/mounts/{name}", "removeMount", "Removes a mounted folder")
            .returns::<Space>(200, "The space"),
        delete(remove_mount),
    )
    .on(
        Op::get(
            "/api/mounts",
            "listMountRoots",
            "Folders that may be mounted; for the server's admins",
        )
        .returns::<MountRoots>(200, "The operator's list"),
        get(mount_roots),
    )
    .on(
        Op::get("/api/secrets", "listSecrets", "Names of secrets; for the server's admins")
            .returns::<Listing<String>>(200, "The names"),
        get(secrets),
    )
}

fn people(api: Api) -> Api {
    let removes = "Removes a member, and ends their runs there; every member may leave";
    let sessions = "Sessions in a space: all for its admins, otherwise the caller's own";
    api.on(
        Op::put("/api/spaces/{id}/members/{user}", "setMember", "Gives a user a role in a space")
            .takes::<Membership>()
            .returns::<Space>(200, "The space"),
        put(set_member),
    )
    .on(
        Op::delete("/api/spaces/{id}/members/{user}", "removeMember", removes)
            .returns_nothing(204, "Removed"),
        delete(remove_member),
    )
    .on(
        Op::get("/api/spaces/{id}/sessions", "listSpaceSessions", sessions)
            .query::<PageQuery>()
            .returns::<Listing<SessionView>>(200, "The sessions"),
        get(sessions_of),
    )
}

fn memories(api: Api) -> Api {
    let shared = "The memory for the agents of all spaces";
    let sets_shared = "Changes the memory for the agents of all spaces; for the server's admins";
    api.on(
        Op::get("/api/spaces/{id}/memory", "readMemory", "The memory for the agents of a space")
            .returns::<Memory>(200, "The memory, with its version as ETag"),
        get(memory),
    )
    .on(
        Op::put(
            "/api/spaces/{id}/memory",
            "writeMemory",
            "Changes the memory for the agents of a space",
        )
        .if_match()
        .takes::<NewMemory>()
        .returns::<Memory>(200, "The memory"),
        put(remember),
    )
    .on(
        Op::get("/api/memory", "readSharedMemory", shared).returns::<Memory>(200, "The memory"),
        get(shared_memory),
    )
    .on(
        Op::put("/api/memory", "writeSharedMemory", sets_shared)
            .if_match()
            .takes::<NewMemory>()
            .returns::<Memory>(200, "The memory"),
        put(remember_for_all),
    )
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<Space>>> {
    Ok(named_list(&app, app.spaces.list(&caller, &query.whole_page()?).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewSpaceBody {
    /// Its name in URLs: lower-case letters, digits and dashes.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    id: String,
    /// Its title for people.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
    /// A folder of the operator, for the server's admins; a private folder if absent.
    #[serde(default)]
    folder: Option<PathBuf>,
    /// The time zone of its users; `UTC` if absent.
    #[serde(default)]
    zone: Option<String>,
    /// The defaults of its sessions, which they cannot widen.
    #[serde(default)]
    #[schemars(with = "Option<Policy>")]
    policy: Option<Object<Policy>>,
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody(new): JsonBody<NewSpaceBody>,
) -> Fallible<(StatusCode, Json<Space>)> {
    let NewSpaceBody { id, title, folder, zone, policy } = new;
    let policy = policy.map_or_else(Policy::default, |Object(policy)| policy);
    let new = NewSpace { id, title, folder, zone, policy };
    Ok((StatusCode::CREATED, named(&app, app.spaces.create(&caller, new).await?)))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Space>> {
    Ok(named(&app, app.spaces.find(&caller, &id, SpaceRole::Member).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeBody {
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
    #[serde(default)]
    zone: Option<String>,
    /// Replaces the whole policy.
    #[serde(default)]
    #[schemars(with = "Option<Policy>")]
    policy: Option<Object<Policy>>,
    /// Names of secrets, replacing all listed ones; for the server's admins.
    #[serde(default)]
    secrets: Option<Vec<String>>,
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<ChangeBody>,
) -> Fallible<Json<Space>> {
    let ChangeBody { title, zone, policy, secrets } = body;
    let policy = policy.map(|Object(policy)| policy);
    let change = Change { title, zone, policy, secrets };
    Ok(named(&app, app.spaces.change(&caller, &id, change).await?))
}

async fn end(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<StatusCode> {
    let space = app.spaces.remove(&caller, &id).await?;
    for user in space.members.keys().chain([&space.owner]) {
        end_sessions(&app, &space, user).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the runs of a user in a space, and the user's MCP servers and their tokens.
async fn end_sessions(app: &App, space: &Space, user: &str) -> Fallible<()> {
    for session in app.spaces.sessions_of(&space.id, user.to_owned()).await? {
        app.sessions.close(&session.id).await;
    }
    app.mcp.forget_in_space(user, space).await;
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewMount {
    /// Its name in the space.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    name: String,
    /// Its absolute path.
    path: PathBuf,
    /// Whether agents may change files in it, if the operator also allows it.
    #[serde(default)]
    write: bool,
}

async fn add_mount(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(NewMount { name, path, write }): JsonBody<NewMount>,
) -> Fallible<(StatusCode, Json<Space>)> {
    let space = app.spaces.add_mount(&caller, &id, name, path, write).await?;
    Ok((StatusCode::CREATED, named(&app, space)))
}

async fn remove_mount(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
) -> Fallible<Json<Space>> {
    Ok(named(&app, app.spaces.remove_mount(&caller, &id, &name).await?))
}

/// The folders that the operator lets spaces mount.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MountRoots {
    roots: Vec<Root>,
    /// Names that are never shown.
    blocked: Vec<String>,
    members_read_only: bool,
    /// Why nothing can be mounted, if so.
    problem: Option<String>,
}

async fn mount_roots(State(app): State<App>, caller: Caller) -> Fallible<Json<MountRoots>> {
    caller.require(Role::Admin)?;
    Ok(Json(match app.spaces.mount_rules() {
        Ok(rules) => MountRoots {
            blocked: rules.blocked(),
            roots: rules.roots,
            members_read_only: rules.members_read_only,
            problem: None,
        },
        Err(error) => MountRoots {
            roots: Vec::new(),
            blocked: Vec::new(),
            members_read_only: true,
            problem: Some(error.detail().message.clone()),
        },
    }))
}

async fn secrets(State(app): State<App>, caller: Caller) -> Fallible<Json<Listing<String>>> {
    caller.require(Role::Admin)?;
    Ok(Json(Listing { items: app.spaces.secret_names()? }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Membership {
    role: MemberRole,
}

async fn set_member(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, user)): PathOf<(String, String)>,
    JsonBody(Membership { role }): JsonBody<Membership>,
) -> Fallible<Json<Space>> {
    let user = app.guard.users.id_of(&user).unwrap_or(user);
    Ok(named(&app, app.spaces.set_member(&caller, &id, &user, role).await?))
}

async fn remove_member(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, user)): PathOf<(String, String)>,
) -> Fallible<StatusCode> {
    let user = match app.guard.users.id_of(&user) {
        Some(id) => id,
        // A member who was removed from the server still has a name here.
        None => {
            let space = app.spaces.find(&caller, &id, SpaceRole::Member).await?;
            let mut members = space.members.into_keys();
            members.find(|id| app.guard.users.name_of(id) == user).unwrap_or(user)
        }
    };
    let space = app.spaces.remove_member(&caller, &id, &user).await?;
    end_sessions(&app, &space, &user).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn sessions_of(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<PageQuery>,
) -> Fallible<Json<Listing<SessionView>>> {
    let page = query.whole_page()?;
    let sessions = app.spaces.sessions(&caller, &id, &page).await?;
    Ok(Json(Listing { items: views(&app, None, sessions).await? }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMemory {
    text: String,
}

async fn memory(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Response> {
    Ok(tagged(app.spaces.memory(&caller, &id).await?))
}

async fn remember(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    JsonBody(NewMemory { text }): JsonBody<NewMemory>,
) -> Fallible<Response> {
    let seen = seen(&headers)?;
    Ok(tagged(app.spaces.remember(&caller, &id, &text, seen.as_deref()).await?))
}

async fn shared_memory(State(app): State<App>, _: Caller) -> Fallible<Response> {
    Ok(tagged(app.spaces.shared_memory()?))
}

async fn remember_for_all(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(NewMemory { text }): JsonBody<NewMemory>,
) -> Fallible<Response> {
    let seen = seen(&headers)?;
    Ok(tagged(app.spaces.remember_for_all(&caller, &text, seen.as_deref()).await?))
}

fn tagged(memory: Memory) -> Response {
    let tag = format!("\"{}\"", memory.version);
    ([(header::ETAG, tag)], Json(memory)).into_response()
}

/// The version that the writer read; any if absent.
fn seen(headers: &HeaderMap) -> Fallible<Option<String>> {
    let odd = || ApiError::invalid("If-Match", "If-Match must be a version in quotes, or *");
    match headers.get(header::IF_MATCH) {
        None => Ok(None),
        Some(tag) => match tag.to_str().map_err(|_| odd())?.trim() {
            "*" => Ok(None),
            tag => {
                let inner = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
                Ok(Some(inner.ok_or_else(odd)?.to_owned()))
            }
        },
    }
}
