//! Who is notified of changes: sessions, and the open streams of clients without one.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::rpc;

/// How many resources one client may watch.
pub(super) const MOST_WATCHED: usize = 1024;

/// Something that changed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    Tools,
    Resources,
    Prompts,
    /// The contents of the resource with this address.
    Resource(&'a str),
}

impl Change<'_> {
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
        }
    }
}

/// The resources that a session watches.
pub(super) type Watched = Arc<Mutex<BTreeSet<String>>>;

/// What a listener wants to know.
#[derive(Debug)]
pub(super) enum Wants {
    /// A session: every changed list, and the resources that it watches.
    Session(Watched),
    /// A stream of `subscriptions/listen`.
    Stream { id: Value, filter: Filter },
}

/// What a stream was opened for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    watched: BTreeSet<String>,
}

impl Filter {
    /// Reads `notifications` of the request. What is unknown is left out, and so not acknowledged.
    pub(super) fn read(wanted: &Value) -> Result<Self, String> {
        let is_on = |key: &str| wanted[key] == true;
        let mut watched = BTreeSet::new();
        for uri in wanted["resourceSubscriptions"].as_array().into_iter().flatten() {
            let uri = uri.as_str().ok_or("`resourceSubscriptions` must be a list of addresses")?;
            watched.insert(uri.to_owned());
        }
        if watched.len() > MOST_WATCHED {
            return Err(format!("`resourceSubscriptions` has more than {MOST_WATCHED} addresses"));
        }
        let (tools, prompts) = (is_on("toolsListChanged"), is_on("promptsListChanged"));
        Ok(Self { tools, prompts, resources: is_on("resourcesListChanged"), watched })
    }

    /// The first message on the stream: what it will carry.
    pub(super) fn acknowledgement(&self, id: &Value) -> Value {
        let lists = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let mut accepted: Map<_, _> = lists
            .into_iter()
            .filter(|(_, is_on)| *is_on)
            .map(|(key, _)| (key.to_owned(), true.into()))
            .collect();
        if !self.watched.is_empty() {
            accepted.insert("resourceSubscriptions".to_owned(), json!(self.watched));
        }
        let params = json!({"_meta": of_stream(id), "notifications": accepted});
        rpc::notification("notifications/subscriptions/acknowledged", Some(params))
    }

    fn covers(&self, change: Change<'_>) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Resources => self.resources,
            Change::Prompts => self.prompts,
            Change::Resource(uri) => self.watched.contains(uri),
        }
    }
}

fn of_stream(id: &Value) -> Value {
    json!({"io.modelcontextprotocol/subscriptionId": id})
}

/// All listeners of a server.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    added: u64,
    listeners: Vec<(u64, mpsc::Sender<Value>, Wants)>,
}

impl Listeners {
    /// Adds a listener; it is removed when its receiver is dropped, or by its number.
    pub(super) fn add(&self, outgoing: mpsc::Sender<Value>, wants: Wants) -> u64 {
        let mut list = self.0.lock();
        list.listeners.retain(|(_, outgoing, _)| !outgoing.is_closed());
        list.added += 1;
        let number = list.added;
        list.listeners.push((number, outgoing, wants));
        number
    }

    pub(super) fn remove(&self, number: u64) {
        let mut list = self.0.lock();
        list.listeners.retain(|(it, ..)| *it != number);
    }

    /// Notifies everyone who wants to know. A client whose queue is full misses it; of a changed list it has the same
    /// notification to read already.
    pub(super) fn announce(&self, change: Change<'_>) {
        let mut list = self.0.lock();
        list.listeners.retain(|(_, outgoing, _)| !outgoing.is_closed());
        for (_, outgoing, wants) in &list.listeners {
            let mut params = Map::new();
            match wants {
                Wants::Session(watched) => {
                    let watches = |uri| watched.lock().contains(uri);
                    if matches!(change, Change::Resource(uri) if !watches(uri)) {
                        continue;
                    }
                }
                Wants::Stream { filter, .. } if !filter.covers(change) => continue,
                Wants::Stream { id, .. } => {
                    params.insert("_meta".to_owned(), of_stream(id));
                }
            }
            if let Change::Resource(uri) = change {
                params.insert("uri".to_owned(), uri.into());
            }
            let params = (!params.is_empty()).then(|| params.into());
            outgoing.try_send(rpc::notification(change.method(), params)).ok();
        }
    }
}
