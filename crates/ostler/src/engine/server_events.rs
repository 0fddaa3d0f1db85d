//! What a server has reported by itself since it was connected: changed lists, changed resources, log messages, its end.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_mcp::Event;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How many log messages are kept, and how many characters of each.
const MOST_MESSAGES: usize = 20;
const MAX_MESSAGE: usize = 500;
/// How many resources are watched.
const MOST_RESOURCES: usize = 64;

#[derive(Default)]
pub(super) struct ServerEvents {
    /// Whether the server reported a change of its tools or prompts that was not read yet.
    is_stale: AtomicBool,
    /// Whether the connection has ended, or the server did not answer.
    has_ended: watch::Sender<bool>,
    log: Mutex<VecDeque<Value>>,
    subscriptions: Mutex<BTreeSet<String>>,
    changed_resources: Mutex<BTreeSet<String>>,
}

impl ServerEvents {
    pub(super) fn note(&self, event: Event) {
        match event {
            Event::ToolsChanged | Event::PromptsChanged => {
                self.is_stale.store(true, Ordering::Relaxed);
            }
            Event::Unreachable(_) | Event::Closed(_) => _ = self.has_ended.send_replace(true),
            Event::Other { method, params, .. } => match method.as_str() {
                "notifications/message" => self.note_message(&params),
                "notifications/resources/updated" => self.note_changed(&params),
                _ => {}
            },
            _ => {}
        }
    }

    fn note_message(&self, params: &Value) {
        let cut = |text: &str| text.chars().take(MAX_MESSAGE).collect::<String>();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut message = json!({
            "level": cut(&text(&params["level"])), "message": cut(&text(&params["data"])),
        });
        if let Some(logger) = params["logger"].as_str() {
            message["logger"] = json!(cut(logger));
        }
        let mut log = self.log.lock();
        if log.len() >= MOST_MESSAGES {
            log.pop_front();
        }
        log.push_back(message);
    }

    /// Notes a changed resource, if it is one that was read.
    fn note_changed(&self, params: &Value) {
        let uri = params["uri"].as_str().unwrap_or_default();
        let known = self.subscriptions.lock();
        if known.contains(uri) {
            let mut changed = self.changed_resources.lock();
            changed.insert(uri.to_owned());
        }
    }

    /// Whether a resource is to be watched and was not before.
    pub(super) fn note_subscription(&self, uri: &str) -> bool {
        let mut known = self.subscriptions.lock();
        known.len() < MOST_RESOURCES && known.insert(uri.to_owned())
    }

    pub(super) fn take_changed_resources(&self) -> Vec<String> {
        let mut changed = self.changed_resources.lock();
        std::mem::take(&mut *changed).into_iter().collect()
    }

    pub(super) fn log(&self) -> Vec<Value> {
        self.log.lock().iter().cloned().collect()
    }

    pub(super) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    pub(super) fn take_stale(&self) -> bool {
        self.is_stale.swap(false, Ordering::Relaxed)
    }

    /// Ends with the connection. Does not keep it open.
    pub(super) fn ended(&self) -> BoxFuture<'static, ()> {
        let mut has_ended = self.has_ended.subscribe();
        async move { _ = has_ended.wait_for(|has_ended| *has_ended).await }.boxed()
    }
}

/// The sessions that share a server, for what it reports about itself.
#[derive(Default)]
pub(super) struct Listeners(Mutex<Vec<Weak<ServerEvents>>>);

impl Listeners {
    pub(super) fn add(&self, events: &Arc<ServerEvents>) {
        let mut listeners = self.0.lock();
        listeners.retain(|known| known.strong_count() > 0);
        listeners.push(Arc::downgrade(events));
    }

    /// Passes on changed lists, changed resources and the end of the connection. All else may be about a call of one
    /// session, and the protocol does not say of which, so no session sees it.
    pub(super) fn note(&self, event: &Event) {
        let is_about_server = match event {
            Event::ToolsChanged
            | Event::PromptsChanged
            | Event::ResourcesChanged
            | Event::Unreachable(_)
            | Event::Closed(_) => true,
            // Each session looks whether it has read the resource.
            Event::Other { method, .. } => method == "notifications/resources/updated",
            _ => false,
        };
        if !is_about_server {
            return;
        }
        let listeners: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|events| events.note(event.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_last_messages_and_a_part_of_each() {
        let events = ServerEvents::default();
        for number in 0..100 {
            let long = format!("{number} {}", "x".repeat(10_000));
            events.note_message(&json!({"level": "info", "logger": "l", "data": long}));
        }
        events.note_message(&json!({"level": "error", "data": {"code": 7}}));
        let log = events.log();
        assert_eq!(log.len(), MOST_MESSAGES);
        assert!(log[0]["message"].as_str().unwrap().starts_with("81 "), "{}", log[0]);
        assert_eq!(log[0]["message"].as_str().unwrap().len(), MAX_MESSAGE);
        assert_eq!(log[MOST_MESSAGES - 1], json!({"level": "error", "message": "{\"code\":7}"}));
    }

    #[test]
    fn only_changes_of_resources_that_were_read_are_noted() {
        let events = ServerEvents::default();
        assert!(events.note_subscription("a") && !events.note_subscription("a"));
        for uri in ["a", "b", "a"] {
            events.note_changed(&json!({"uri": uri}));
        }
        assert_eq!(events.take_changed_resources(), ["a"]);
        assert_eq!(events.take_changed_resources(), [""; 0]);
        let n_more = (0..1000).filter(|n| events.note_subscription(&n.to_string())).count();
        assert_eq!(n_more, MOST_RESOURCES - 1);
    }
}
