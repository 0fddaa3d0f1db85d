//! Notifications of a server without sessions (MCP 2026-07-28): it sends them as long as one request is open.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};

use super::options::{CallOptions, Event};
use super::session::{Answer, Begun, Session, Shared, request};
use super::types::ServerDetails;
use crate::rpc;

/// How long to wait before the request is repeated, at first and at most. It doubles each time.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The lists that can change: capability, name in the request, event.
const LISTS: [(&str, &str, Event); 3] = [
    ("tools", "toolsListChanged", Event::ToolsChanged),
    ("prompts", "promptsListChanged", Event::PromptsChanged),
    ("resources", "resourcesListChanged", Event::ResourcesChanged),
];

type Lists = Vec<(&'static str, &'static str, Event)>;

/// The resources whose changes are wanted.
#[derive(Default)]
pub(super) struct Watched {
    uris: Mutex<BTreeSet<String>>,
    changed: Notify,
}

impl Watched {
    pub(super) fn add(&self, uri: &str) {
        if self.uris.lock().insert(uri.to_owned()) {
            self.changed.notify_one();
        }
    }

    pub(super) fn remove(&self, uri: &str) {
        if self.uris.lock().remove(uri) {
            self.changed.notify_one();
        }
    }
}

/// Asks for the notifications that the server declares, while the session lasts.
pub(super) fn listen(session: &Session, details: &ServerDetails) {
    let declares = |capability: &str| details.capabilities.get(capability);
    let lists: Vec<_> = LISTS
        .into_iter()
        .filter(|(list, ..)| declares(list).is_some_and(|it| it["listChanged"] == true))
        .collect();
    if !lists.is_empty() || declares("resources").is_some_and(|it| it["subscribe"] == true) {
        let shared = Arc::clone(session.shared());
        session.keep_listening(|outgoing| keep_listening(shared, outgoing, lists));
    }
}

/// What the request asks for; empty if nothing is wanted.
fn filter(lists: &Lists, watched: &Watched) -> Map<String, Value> {
    let wanted = lists.iter().map(|(_, name, _)| ((*name).to_owned(), true.into()));
    let mut wanted: Map<_, _> = wanted.collect();
    let uris = watched.uris.lock();
    if !uris.is_empty() {
        wanted.insert("resourceSubscriptions".to_owned(), json!(*uris));
    }
    wanted
}

async fn keep_listening(shared: Arc<Shared>, outgoing: mpsc::WeakSender<Value>, lists: Lists) {
    let [mut wait, longest] = WAITS;
    // The request before, which ends only when the next one is there, so that no change is missed in between.
    let mut before: Option<u64> = None;
    loop {
        let wanted = filter(&lists, &shared.watched);
        if wanted.is_empty() && before.is_none() {
            shared.watched.changed.notified().await;
            continue;
        }
        let Ok(Begun { id, answer, .. }) = shared.begin(CallOptions::default()) else { return };
        let params = shared.with_metadata(json!({"notifications": wanted}));
        let Some(outgoing) = outgoing.upgrade() else { return };
        if outgoing.send(request(id, "subscriptions/listen", params)).await.is_err() {
            return;
        }
        if let Some(before) = before.take() {
            shared.forget(before);
            let params = json!({"requestId": before, "reason": "other changes are wanted"});
            let cancelled = rpc::notification("notifications/cancelled", Some(params));
            outgoing.send(cancelled).await.ok();
        }
        drop(outgoing);
        let answer = tokio::select! {
            answer = answer => answer,
            () = shared.watched.changed.notified() => {
                before = Some(id);
                continue;
            }
        };
        match answer {
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
