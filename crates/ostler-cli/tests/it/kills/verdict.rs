//! Compares the store with what users received.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use ostler_store::{Filter, Page, Sqlite, Store, StreamId};
use serde_json::Value;

use super::load::Known;

/// The content of the store.
struct Stored {
    /// By session: number, kind and body of each event.
    logs: BTreeMap<String, Vec<(u64, String, String)>>,
    runs: HashMap<String, Value>,
    approvals: HashMap<String, Value>,
    audit: Vec<Value>,
}

/// Checks the store; returns a summary.
pub(super) async fn judge(folder: &Path, known: &Known, ran: &str) -> String {
    let store = Sqlite::open(folder).await.unwrap();
    assert_eq!(store.examine().await.unwrap(), [], "the hash chains are valid");
    let stored = load(&store).await;
    numbers_grow_and_no_message_is_stored_twice(&stored);
    events_that_users_saw_are_stored(&stored, known);
    no_event_was_skipped(&stored, known);
    acknowledged_runs_and_decisions_are_stored(&stored, known);
    records_match_the_logs(&stored);
    all_runs_are_over(&stored);
    approvals_are_pending_or_decided_once(&stored, known);
    nothing_ran_that_was_not_allowed(&stored, ran);
    let n_seen: usize = known.events.values().map(BTreeMap::len).sum();
    let n_stored: usize = stored.logs.values().map(Vec::len).sum();
    let interrupted = stored.runs.values().filter(|run| run["state"] == "interrupted").count();
    // With less work the test would prove nothing.
    assert!(n_seen > 50 && known.runs.len() > 5 && !known.decisions.is_empty(), "too little work");
    format!(
        "{n_seen} of {n_stored} events seen, {} runs acknowledged ({interrupted} interrupted), {} decisions, {} commands",
        known.runs.len(),
        known.decisions.len(),
        ran.lines().count(),
    )
}

async fn load(store: &Sqlite) -> Stored {
    let mut logs = BTreeMap::new();
    for session in records(store, "session").await.into_keys() {
        let stream = StreamId::new(&session).unwrap();
        let mut log = Vec::new();
        loop {
            let after = log.last().map_or(0, |(seq, ..): &(u64, String, String)| *seq);
            let some = store.read_from(&stream, after, 1_000).await.unwrap();
            if some.is_empty() {
                break;
            }
            let event = |event: ostler_store::Event| {
                (event.seq, event.kind.clone(), event.body.as_str().to_owned())
            };
            log.extend(some.into_iter().map(event));
        }
        logs.insert(session, log);
    }
    Stored {
        logs,
        runs: records(store, "run").await,
        approvals: records(store, "approval").await,
        audit: records(store, "audit").await.into_values().collect(),
    }
}

async fn records(store: &Sqlite, kind: &str) -> HashMap<String, Value> {
    let mut found = HashMap::new();
    let mut after = None;
    loop {
        let page = Page { after: after.take(), limit: 500, ..Page::default() };
        let some = store.list(kind, &Filter::default(), &page).await.unwrap();
        let Some(last) = some.last() else { return found };
        after = Some(last.id.clone());
        found.extend(some.into_iter().map(|record| (record.id, record.body)));
    }
}

fn numbers_grow_and_no_message_is_stored_twice(stored: &Stored) {
    for (session, log) in &stored.logs {
        let numbers: Vec<u64> = log.iter().map(|(seq, ..)| *seq).collect();
        // Deltas of complete messages are deleted together with their numbers.
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{session}: {numbers:?}");
        let mut messages = HashSet::new();
        for (seq, _, body) in log.iter().filter(|(_, kind, _)| kind == "message") {
            let body: Value = serde_json::from_str(body).unwrap();
            if let Some(uuid) = body["message"]["uuid"].as_str() {
                assert!(messages.insert(uuid.to_owned()), "{session} {seq} is there twice: {body}");
            }
        }
    }
}

fn events_that_users_saw_are_stored(stored: &Stored, known: &Known) {
    for (session, events) in &known.events {
        let log = stored.logs.get(session).unwrap_or_else(|| panic!("{session} is gone"));
        for (seq, seen) in events {
            let found = log.iter().find(|(there, ..)| there == seq).map(|(.., body)| body);
            let may_be_gone = seen.contains("\"type\":\"stream_event\"");
            assert!(
                found == Some(seen) || (found.is_none() && may_be_gone),
                "event {seq} of {session}: {found:?} instead of {seen}"
            );
        }
    }
}

/// A user who saw an event saw all before it, except deltas of complete messages.
fn no_event_was_skipped(stored: &Stored, known: &Known) {
    for (session, events) in &known.events {
        let last = events.keys().next_back().copied().unwrap_or_default();
        for (seq, _, body) in stored.logs[session].iter().filter(|(seq, ..)| *seq <= last) {
            let is_delta = body.contains("\"type\":\"stream_event\"");
            assert!(is_delta || events.contains_key(seq), "no user saw event {seq} of {session}");
        }
    }
}

fn acknowledged_runs_and_decisions_are_stored(stored: &Stored, known: &Known) {
    for (run, session) in &known.runs {
        let found = stored.runs.get(run).unwrap_or_else(|| panic!("{run} is gone"));
        assert_eq!(found["session"], session.as_str());
    }
    for (id, state) in &known.decisions {
        let found = stored.approvals.get(id).unwrap_or_else(|| panic!("{id} is gone"));
        assert_eq!(found["state"], state.as_str(), "{found}");
    }
}

/// The last state of each thing in the events of its kind.
fn last_states(stored: &Stored, kind: &str) -> HashMap<String, Value> {
    let events = stored.logs.values().flatten().filter(|(_, it, _)| it == kind);
    let said = events.map(|(.., body)| {
        let thing = serde_json::from_str::<Value>(body).unwrap()[kind].take();
        (thing["id"].as_str().unwrap().to_owned(), thing)
    });
    said.collect()
}

fn records_match_the_logs(stored: &Stored) {
    for (kind, records) in [("run", &stored.runs), ("approval", &stored.approvals)] {
        let said = last_states(stored, kind);
        assert_eq!(said.len(), records.len(), "every {kind} has an event and a record");
        for (id, record) in records {
            assert_eq!(said[id]["state"], record["state"], "{id}");
        }
    }
}

/// A user has waited for the end of all remaining runs.
fn all_runs_are_over(stored: &Stored) {
    for (id, run) in &stored.runs {
        let state = run["state"].as_str().unwrap();
        assert!(matches!(state, "completed" | "interrupted" | "cancelled"), "{id}: {run}");
    }
}

fn approvals_are_pending_or_decided_once(stored: &Stored, known: &Known) {
    for (id, approval) in &stored.approvals {
        let is_pending = approval["state"] == "pending";
        let audited: Vec<&Value> =
            stored.audit.iter().filter(|entry| entry["approval"] == id.as_str()).collect();
        assert_eq!(audited.len(), usize::from(!is_pending), "{approval}: {audited:?}");
        assert!(!(is_pending && known.decisions.contains_key(id)), "{approval} was decided");
        let events = stored.logs[approval["session"].as_str().unwrap()].iter();
        let decided = events.filter(|(_, kind, body)| {
            let is_it = kind == "approval" && body.contains(id.as_str());
            is_it && !body.contains(r#""state":"pending""#)
        });
        assert_eq!(decided.count(), usize::from(!is_pending), "{approval} is decided once");
    }
}

/// An approval is for one call. It may be lost with the server, but not be used twice.
fn nothing_ran_that_was_not_allowed(stored: &Stored, ran: &str) {
    let allowed = |slot: &str| {
        let command = format!("echo {slot} >> ran");
        let is_it = |it: &&Value| it["state"] == "allowed" && it["input"]["command"] == command;
        stored.approvals.values().filter(is_it).count()
    };
    let slots: HashSet<&str> = ran.lines().collect();
    for slot in slots {
        let n_ran = ran.lines().filter(|line| *line == slot).count();
        assert!(n_ran <= allowed(slot), "{slot} ran {n_ran} times, allowed {}", allowed(slot));
    }
}
