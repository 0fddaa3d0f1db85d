//! MCP servers of spaces and sessions over HTTP. Values of variables and headers are never shown, because they may be
//! secret.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::{delete, get, post, put};
use ostler::Handle;
use ostler::proto::mcp::{McpConnection, McpServerStatus};
use ostler_base::error::{ApiError, Fallible, JsonBody, PathOf};
use ostler_core::app::App;
use ostler_core::mcp_servers::{FoundServer, Origin, own_session};
use ostler_core::model::mcp_server::ServerConfig;
use ostler_core::model::run::Session;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listing::Listing;
use super::openapi::{Api, Op};
use super::page::CALLBACK;
use super::sessions::readable;

/// How long an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn routes(api: Api) -> Api {
    sign_ins(of_sessions(of_spaces(api)))
}

fn of_spaces(api: Api) -> Api {
    let puts = "Adds an MCP server to a space, or replaces it; for its admins";
    let removes = "Removes an MCP server of a space; for its admins";
    api.on(
        Op::get("/api/spaces/{id}/mcp-servers", "listSpaceMcpServers", "MCP servers of a space")
            .returns::<Listing<McpServerView>>(200, "The servers"),
        get(list_of_space),
    )
    .on(
        Op::put("/api/spaces/{id}/mcp-servers/{name}", "putSpaceMcpServer", puts)
            .takes::<ServerConfig>()
            .returns_nothing(204, "Stored; used from the next run"),
        put(put_in_space),
    )
    .on(
        Op::delete("/api/spaces/{id}/mcp-servers/{name}", "removeSpaceMcpServer", removes)
            .returns_nothing(204, "Removed"),
        delete(remove_from_space),
    )
}

fn of_sessions(api: Api) -> Api {
    let lists = "MCP servers of a session, with their state";
    let puts = "Adds an MCP server to a session, or replaces it; for the session's user";
    let removes = "Removes an MCP server that a session has of its own";
    let switches = "Switches an MCP server on or off in a session; for the session's user";
    api.on(
        Op::get("/api/sessions/{id}/mcp-servers", "listSessionMcpServers", lists)
            .returns::<Listing<McpServerView>>(200, "The servers"),
        get(list_of_session),
    )
    .on(
        Op::put("/api/sessions/{id}/mcp-servers/{name}", "putSessionMcpServer", puts)
            .takes::<ServerConfig>()
            .returns_nothing(204, "Stored; used from the next run"),
        put(put_in_session),
    )
    .on(
        Op::delete("/api/sessions/{id}/mcp-servers/{name}", "removeSessionMcpServer", removes)
            .returns_nothing(204, "Removed"),
        delete(remove_from_session),
    )
    .on(
        Op::put("/api/sessions/{id}/mcp-servers/{name}/use", "switchMcpServer", switches)
            .takes::<Switch>()
            .returns_nothing(204, "Stored; used from the next run"),
        put(switch),
    )
}

fn sign_ins(api: Api) -> Api {
    let begins = "Begins to sign the session's user in to an MCP server behind an address";
    let ends = "Deletes the tokens of the session's user for an MCP server";
    let finishes = "Finishes signing in, with the address that the browser was led to";
    api.on(
        Op::post("/api/sessions/{id}/mcp-servers/{name}/sign-in", "signInToMcpServer", begins)
            .returns::<SignInView>(200, "The address to open in a browser"),
        post(sign_in),
    )
    .on(
        Op::delete("/api/sessions/{id}/mcp-servers/{name}/sign-in", "signOutOfMcpServer", ends)
            .returns_nothing(204, "Deleted"),
        delete(sign_out),
    )
    .on(
        Op::post("/api/mcp/sign-in", "finishMcpSignIn", finishes)
            .takes::<Callback>()
            .returns::<SignedInView>(200, "Signed in"),
        post(finish_sign_in),
    )
}

/// An MCP server of a space or a session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct McpServerView {
    name: String,
    /// `space` or `session`: where it was configured.
    from: &'static str,
    /// `stdio`, `http` or `sse`.
    r#type: &'static str,
    /// The program with its arguments, or the address.
    summary: String,
    /// The names of its variables or headers.
    variables: Vec<String>,
    /// Whether sessions of one user share the program.
    shared: bool,
    /// The user who configured it.
    by: String,
    /// When, in milliseconds since 1970.
    at: u64,
    /// Whether the session uses it.
    on: bool,
    /// Why it does not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The state in the running engine: `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Why it failed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How many tools it has, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<u64>,
}

impl McpServerView {
    fn new(app: &App, found: FoundServer, states: &mut HashMap<String, McpServerStatus>) -> Self {
        let FoundServer { name, origin, config, by, at, on, problem, .. } = found;
        let state = states.remove(&name);
        let (error, tools) = state.as_ref().map_or((None, None), |state| {
            let tools = state.tools.as_ref().map(|tools| tools.len() as u64);
            (state.error.as_ref().map(|error| app.sessions.redacted(error)), tools)
        });
        let (kind, named, shared) = match &config {
            ServerConfig::Stdio(program) => ("stdio", &program.env, program.shared),
            ServerConfig::Http(remote) => ("http", &remote.headers, false),
            ServerConfig::Sse(remote) => ("sse", &remote.headers, false),
        };
        Self {
            from: if origin == Origin::Space { "space" } else { "session" },
            r#type: kind,
            summary: app.sessions.redacted(&config.summary()),
            variables: named.keys().cloned().collect(),
            shared,
            by: app.guard.users.name_of(&by),
            at,
            on,
            problem,
            status: state.map(|state| state.status.to_string()),
            error,
            tools,
            name,
        }
    }
}

async fn list_of_space(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Listing<McpServerView>>> {
    let found = app.mcp.of_space(&caller, &id).await?.into_iter();
    let items = found.map(|found| McpServerView::new(&app, found, &mut HashMap::new())).collect();
    Ok(Json(Listing { items }))
}

async fn put_in_space(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
    JsonBody(config): JsonBody<ServerConfig>,
) -> Fallible<StatusCode> {
    app.mcp.put_in_space(&caller, &id, (&name, config)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove_from_space(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
) -> Fallible<StatusCode> {
    app.mcp.remove_from_space(&caller, &id, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn list_of_session(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Listing<McpServerView>>> {
    let session = readable(&app, &caller, &id).await?;
    let mut states = match app.sessions.engine(&session, false).await? {
        Some(engine) => states(&engine).await,
        None => HashMap::new(),
    };
    let found = app.mcp.of_session(&session).await?.into_iter();
    let items = found.map(|found| McpServerView::new(&app, found, &mut states)).collect();
    Ok(Json(Listing { items }))
}

/// The states of an engine's servers, by name; none if it does not report them.
async fn states(engine: &Handle) -> HashMap<String, McpServerStatus> {
    let asked = tokio::time::timeout(PATIENCE, engine.mcp_server_status()).await;
    let servers = asked.ok().and_then(Result::ok).map(|reply| reply.mcp_servers);
    servers.into_iter().flatten().map(|server| (server.name.clone(), server)).collect()
}

async fn put_in_session(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
    JsonBody(config): JsonBody<ServerConfig>,
) -> Fallible<StatusCode> {
    let session = app.sessions.find(&caller, &id).await?;
    app.mcp.put_in_session(&caller, &session, (&name, config)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove_from_session(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
) -> Fallible<StatusCode> {
    let session = app.sessions.find(&caller, &id).await?;
    app.mcp.remove_from_session(&caller, &session, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Switch {
    on: bool,
}

async fn switch(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
    JsonBody(Switch { on }): JsonBody<Switch>,
) -> Fallible<StatusCode> {
    let session = app.sessions.find(&caller, &id).await?;
    app.mcp.switch(&caller, &session, &name, on).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A begun sign-in.
#[derive(Serialize, JsonSchema)]
struct SignInView {
    /// The address of the authorization server, for the user's browser. It leads back to the page.
    url: String,
}

async fn sign_in(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
    headers: HeaderMap,
) -> Fallible<Json<SignInView>> {
    let session = app.sessions.find(&caller, &id).await?;
    own_session(&caller, &session)?;
    // The engine knows the lists of allowed and denied servers, and reaches none that they refuse.
    let engine = app.sessions.engine(&session, true).await?;
    let state = match &engine {
        Some(engine) => states(engine).await.remove(&name),
        None => None,
    };
    if state.as_ref().is_none_or(|state| state.status != McpConnection::NeedsAuth) {
        let state = state.map_or("not there".to_owned(), |state| state.status.to_string());
        let message = format!("the MCP server {name} does not ask to sign in: it is {state}");
        return Err(ApiError::conflict("no_sign_in", message)
            .hint("a server that is just connecting has to be tried again"));
    }
    let base = match &app.public_url {
        Some(url) => url.to_string(),
        None => {
            // The guard has checked that this is a name of the server.
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            format!("http://{}", host.unwrap_or("localhost"))
        }
    };
    let redirect = format!("{base}{CALLBACK}");
    let url = app.mcp.begin_sign_in(&caller, &session, &name, &redirect).await?;
    Ok(Json(SignInView { url }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Callback {
    /// The whole address to which the browser was led back.
    #[schemars(length(max = 8_000))]
    url: String,
}

/// A finished sign-in.
#[derive(Serialize, JsonSchema)]
struct SignedInView {
    session: String,
    server: String,
}

async fn finish_sign_in(
    State(app): State<App>,
    caller: Caller,
    JsonBody(Callback { url }): JsonBody<Callback>,
) -> Fallible<Json<SignedInView>> {
    let done = app.mcp.finish_sign_in(&caller, &url).await?;
    let session = app.sessions.find(&caller, &done.session).await?;
    reconnect(&app, &session, &done.server).await?;
    Ok(Json(SignedInView { session: done.session, server: done.server }))
}

async fn sign_out(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, name)): PathOf<(String, String)>,
) -> Fallible<StatusCode> {
    let session = app.sessions.find(&caller, &id).await?;
    app.mcp.sign_out(&caller, &session, &name).await?;
    reconnect(&app, &session, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Connects a server again in all running engines that use the same tokens, so that each has the tokens of now.
async fn reconnect(app: &App, session: &Session, name: &str) -> Fallible<()> {
    for other in app.mcp.with_same_tokens(session).await? {
        if let Some(engine) = app.sessions.engine(&other, false).await? {
            // One that does not use the server, or cannot reach it, has nothing to forget.
            let again = engine.reconnect_mcp_server(name);
            let _ = tokio::time::timeout(PATIENCE, again).await;
        }
    }
    Ok(())
}
