//! The conversation of a session over HTTP: its messages page by page, and the run that a message started.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use ostler_agui::message::Message;
use ostler_base::error::{self, ApiError, Fallible, PathOf, QueryOf};
use ostler_core::app::App;
use ostler_door::users::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::openapi::{Api, Op};
use super::sessions::readable;
use super::sse;
use crate::agui::history_page::{self, HistoryPage};
use crate::agui::run_pages::{self, Begun};

pub(super) fn routes(api: Api) -> Api {
    let lists = "The messages of a session in AG-UI format: the newest, or those before an event";
    let finds = "The run that a message of the user started";
    api.on(
        Op::get("/api/sessions/{id}/messages", "listMessages", lists)
            .query::<MessagesQuery>()
            .returns::<Messages>(200, "The messages"),
        get(list),
    )
    .on(
        Op::get("/api/sessions/{id}/messages/{message}/run", "findRun", finds)
            .returns::<MessageRun>(200, "The run"),
        get(run),
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessagesQuery {
    /// Only messages before this event: the `earlier` of another response.
    #[schemars(range(min = 1, max = sse::LAST))]
    before: Option<u64>,
}

/// Messages, oldest first. If there are earlier ones, the first is a `system` message whose id begins with `earlier-`.
#[derive(Serialize, JsonSchema)]
struct Messages {
    #[schemars(with = "Vec<Value>")]
    items: Vec<Message>,
    /// The event before which there are more messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<u64>,
}

/// The run of a message.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MessageRun {
    /// Absent if the message was sent to an active run: it started no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<MessagesQuery>,
) -> Fallible<Json<Messages>> {
    let session = readable(&app, &caller, &id).await?;
    if query.before == Some(0) {
        return Err(ApiError::invalid("before", "events are numbered from 1"));
    }
    let before = query.before.map(sse::number).transpose()?;
    let HistoryPage { messages, earlier, .. } = history_page::of(&app, &session, before).await?;
    Ok(Json(Messages { items: messages, earlier }))
}

async fn run(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, message)): PathOf<(String, String)>,
) -> Fallible<Json<MessageRun>> {
    let session = readable(&app, &caller, &id).await?;
    match run_pages::begun_by(&app, &session, &message).await? {
        Some(Begun::Run(run_id)) => Ok(Json(MessageRun { run_id: Some(run_id) })),
        Some(Begun::Nothing) => Ok(Json(MessageRun { run_id: None })),
        None => Err(error::not_found("message", &message)),
    }
}
