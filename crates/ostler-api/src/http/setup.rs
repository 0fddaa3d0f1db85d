//! The report of a session's engine about itself, and suggestions of files, over HTTP.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use ostler::Handle;
use ostler::proto::control::FileSuggestions;
use ostler_base::error::{ApiError, Fallible, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_core::runs::about::{About, McpServer, Named};
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::openapi::{Api, Op};
use super::sessions::readable;

/// How long an engine may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_FILES: usize = 200;

pub(super) fn routes(api: Api) -> Api {
    let says = "The report of the last engine of a session about itself";
    let suggests = "Files in the folder of a session that match a text, the best first";
    api.on(
        Op::get("/api/sessions/{id}/setup", "sessionSetup", says)
            .returns::<SetupView>(200, "The report"),
        get(setup),
    )
    .on(
        Op::get("/api/sessions/{id}/files", "suggestFiles", suggests)
            .query::<FilesQuery>()
            .returns::<Files>(200, "The files"),
        get(files),
    )
}

/// The report of an engine. Empty as long as there was none.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetupView {
    /// When it was sent, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    tools: Vec<String>,
    agents: Vec<Named>,
    skills: Vec<String>,
    commands: Vec<Named>,
    mcp_servers: Vec<McpServer>,
    /// What a sandbox enforces for its commands; missing without a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<Value>,
    /// Whether the engine is running, so that the state of its servers is current.
    live: bool,
}

async fn setup(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<SetupView>> {
    let session = readable(&app, &caller, &id).await?;
    let found = app.sessions.records.find::<About>(&session.id).await?.map(|(about, _)| about);
    let mut about = found.filter(|about| about.at >= session.created).unwrap_or_default();
    let servers = match app.sessions.engine(&session, false).await? {
        Some(engine) => servers(&app, &engine).await,
        None => None,
    };
    let live = servers.is_some();
    if let Some(servers) = servers {
        about.mcp_servers = servers;
    }
    let known = about.at > 0;
    Ok(Json(SetupView {
        at: known.then_some(about.at),
        model: known.then_some(about.model),
        permission_mode: known.then_some(about.permission_mode),
        cwd: known.then_some(about.cwd),
        version: about.version,
        tools: about.tools,
        agents: about.agents,
        skills: about.skills,
        commands: about.commands,
        mcp_servers: about.mcp_servers,
        sandbox: about.sandbox,
        live,
    }))
}

/// The state of an engine's servers; `None` if it does not report it.
async fn servers(app: &App, engine: &Handle) -> Option<Vec<McpServer>> {
    let asked = tokio::time::timeout(PATIENCE, engine.mcp_server_status()).await;
    let server = |it: ostler::proto::mcp::McpServerStatus| McpServer {
        name: it.name,
        status: it.status.to_string(),
        error: it.error.map(|error| app.sessions.redacted(&error)),
        tools: it.tools.map(|tools| tools.len() as u64),
    };
    Some(asked.ok()?.ok()?.mcp_servers.into_iter().map(server).collect())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilesQuery {
    /// The typed text; without it, the files at the top level.
    #[schemars(length(max = 500))]
    q: Option<String>,
    /// The maximum number of files; 50 by default.
    #[schemars(range(min = 1, max = MOST_FILES))]
    limit: Option<usize>,
}

/// Matching files.
#[derive(Serialize, JsonSchema)]
struct Files {
    items: Vec<FileView>,
    /// Whether there are more files than were searched.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct FileView {
    /// Relative to the folder of the session; a folder ends in a slash.
    path: String,
    kind: FileKind,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum FileKind {
    File,
    Folder,
}

/// The engine searches, because it knows what its agent may read.
async fn files(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<FilesQuery>,
) -> Fallible<Json<Files>> {
    let limit @ 1..=MOST_FILES = query.limit.unwrap_or(50) else {
        return Err(ApiError::invalid("limit", "the limit must be between 1 and 200"));
    };
    let typed = query.q.unwrap_or_default();
    if typed.chars().count() > 500 {
        return Err(ApiError::invalid("q", "the text can have at most 500 characters"));
    }
    let session = app.sessions.find(&caller, &id).await?;
    let cannot = |why: String| {
        let message = format!("the engine of this session cannot suggest files: {why}");
        ApiError::conflict("no_suggestions", message)
    };
    let engine = app.sessions.engine(&session, true).await?;
    let engine = engine.ok_or_else(|| cannot("it is just starting; try again".to_owned()))?;
    let mut request = FileSuggestions { query: typed, ..FileSuggestions::default() };
    request.extra.insert("limit", limit);
    let reply = tokio::time::timeout(PATIENCE, engine.ask(request)).await;
    let reply = reply.map_err(|_| cannot("it does not answer".to_owned()))?;
    let reply = reply.map_err(|error| cannot(error.to_string()))?;
    let path = |it: &Value| it.get("path").or(Some(it)).and_then(Value::as_str).map(str::to_owned);
    let item = |path: String| {
        let kind = if path.ends_with('/') { FileKind::Folder } else { FileKind::File };
        FileView { path, kind }
    };
    let items = reply.suggestions.iter().filter_map(path).take(limit).map(item).collect();
    let truncated = reply.extra.get("truncated").and_then(Value::as_bool).unwrap_or(false);
    Ok(Json(Files { items, truncated }))
}
