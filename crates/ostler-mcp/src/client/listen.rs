//! Notifications of a server without sessions (MCP 2026-07-28): it sends them as long as one request is open.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::options::{CallOptions, Event};
use super::session::{Answer, Begun, Session, Shared, request};
use super::types::ServerDetails;

/// How long to wait before the request is repeated, at first and at most. It doubles each time.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The lists that can change: capability, name in the request, event.
const LISTS: [(&str, &str, Event); 3] = [
    ("tools", "toolsListChanged", Event::ToolsChanged),
    ("prompts", "promptsListChanged", Event::PromptsChanged),
    ("resources", "resourcesListChanged", Event::ResourcesChanged),
];

/// Asks for the notifications that the server declares, while the session lasts.
pub(super) fn listen(session: &Session, details: &ServerDetails) {
    let declares = |capability: &str| details.capabilities.get(capability);
    let lists: Vec<_> = LISTS
        .into_iter()
        .filter(|(list, ..)| declares(list).is_some_and(|it| it["listChanged"] == true))
        .collect();
    if !lists.is_empty() {
        let shared = Arc::clone(session.shared());
        session.keep_listening(|outgoing| keep_listening(shared, outgoing, lists));
    }
}

async fn keep_listening(
    shared: Arc<Shared>,
    outgoing: mpsc::WeakSender<Value>,
    lists: Vec<(&'static str, &'static str, Event)>,
) {
    let wanted: Map<_, _> =
        lists.iter().map(|(_, name, _)| ((*name).to_owned(), true.into())).collect();
    let [mut wait, longest] = WAITS;
    loop {
        let Ok(Begun { id, answer, .. }) = shared.begin(CallOptions::default()) else { return };
        let params = shared.with_metadata(json!({"notifications": wanted}));
        let Some(outgoing) = outgoing.upgrade() else { return };
        if outgoing.send(request(id, "subscriptions/listen", params)).await.is_err() {
            return;
        }
        drop(outgoing);
        match answer.await {
            // The server ended the stream, or it broke.
            Ok(Answer::Result(_)) => {}
            Ok(Answer::Refused(error)) if error["code"] == -32000 => {}
            // It does not offer this, or the connection is over.
            _ => return,
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(longest);
        // Changes in between were not reported.
        lists.iter().for_each(|(.., event)| shared.notify_listener(event.clone()));
    }
}
