//! The files that agents changed, and restoring them, over HTTP.

use axum::Json;
use axum::extract::State;
use axum::routing::{get, post};
use ostler_base::error::{Fallible, JsonBody, PathOf};
use ostler_core::app::App;
use ostler_core::runs::edits::{FileChange, RunChanges};
use ostler_core::runs::rewind::Rewound;
use ostler_door::users::Caller;
use ostler_store::Filter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::openapi::{Api, Op};
use super::sessions::readable;

/// How many runs are listed: the last ones.
const MOST_RUNS: usize = 200;

pub(super) fn routes(api: Api) -> Api {
    let lists = "Files that the tools of an agent changed, by run, oldest first; without changes by commands";
    let rewinds =
        "Restores files to their state before the prompt of a run; the conversation stays";
    api.on(
        Op::get("/api/sessions/{id}/changes", "sessionChanges", lists)
            .returns::<Changes>(200, "The changes"),
        get(list),
    )
    .on(
        Op::post("/api/sessions/{id}/rewind", "rewindFiles", rewinds)
            .takes::<RewindRequest>()
            .returns::<Rewound>(200, "The restored files, or those that would be restored"),
        post(rewind),
    )
}

/// The changes of a session.
#[derive(Serialize, JsonSchema)]
struct Changes {
    /// Runs that changed files; the last 200.
    runs: Vec<RunView>,
    /// Added lines.
    added: u64,
    /// Removed lines.
    removed: u64,
}

#[derive(Serialize, JsonSchema)]
struct RunView {
    run: String,
    /// The beginning of its prompt.
    prompt: String,
    /// When it ended, in milliseconds since 1970.
    at: u64,
    files: Vec<FileChange>,
    /// Whether more files were changed.
    cut: bool,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Fallible<Json<Changes>> {
    let session = readable(&app, &caller, &id).await?;
    let totals = app.sessions.session_totals(&session).await?;
    let field = Some(("session".to_owned(), session.id));
    let filter = Filter { field, ..Filter::default() };
    let mut found: Vec<RunChanges> = app.sessions.records.newest(&filter, MOST_RUNS).await?;
    // A deleted session may have had the same id.
    found.retain(|changes| changes.at >= session.created);
    let (added, removed) = (totals.added, totals.removed);
    let view = |RunChanges { id, prompt, at, files, cut, .. }: RunChanges| RunView {
        run: id,
        prompt,
        at,
        files,
        cut,
    };
    Ok(Json(Changes { runs: found.into_iter().rev().map(view).collect(), added, removed }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RewindRequest {
    /// The files are restored to their state before the prompt of this run.
    before: String,
    /// Only reports what would happen.
    #[serde(default)]
    dry_run: bool,
}

async fn rewind(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(wanted): JsonBody<RewindRequest>,
) -> Fallible<Json<Rewound>> {
    let session = app.sessions.find(&caller, &id).await?;
    Ok(Json(app.sessions.rewind(&session, &wanted.before, wanted.dry_run).await?))
}
