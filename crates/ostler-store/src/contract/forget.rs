//! Dropped drafts, deleted streams, trimmed streams.

use serde_json::json;

use super::{LEASE, Subject, claim, message, read_all, stream, text};
use crate::{Error, Event, Filter, NewEvent, Put};

fn numbers_and_texts(events: &[Event]) -> Vec<(u64, String)> {
    events.iter().map(|event| (event.seq, text(event))).collect()
}

fn part(text: &str, whole: &str) -> NewEvent {
    message(text).draft(whole)
}

// Seen to fail when nothing is dropped.
pub async fn drafts_are_readable_until_the_complete_event_arrives(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let events = vec![message("begin"), part("on", "x#0"), part("by", "y#0"), part("e", "x#0")];
    let added = store.append(&lease, events, vec![]).await.expect("appending");
    assert_eq!(read_all(&store, "a", 2).await, added, "in order, like events");
    let drafts = store.drafts(&stream("a")).await.expect("reading");
    assert_eq!(numbers_and_texts(&drafts), numbers_and_texts(&added[1..]));
    store.verify(&stream("a")).await.expect("nothing is damaged");
    store.append(&lease, vec![message("one").drops("x#")], vec![]).await.expect("appending");
    store.append(&lease, vec![part("end", "x").drops("x")], vec![]).await.expect("appending");
    // Waits until all fleeting events are committed.
    store.put(vec![]).await.expect("nothing to write");
    let rest = [(1, "begin".into()), (3, "by".into()), (5, "one".into())];
    assert_eq!(numbers_and_texts(&read_all(&store, "a", 1).await), rest);
    assert_eq!(
        numbers_and_texts(&store.drafts(&stream("a")).await.expect("reading")),
        [(3, "by".into())]
    );
    // Reading from the middle of the dropped drafts works, and the next event gets a new number.
    assert_eq!(
        numbers_and_texts(&store.read_from(&stream("a"), 2, 9).await.expect("reading")),
        rest[1..]
    );
    assert_eq!(
        numbers_and_texts(&store.read_from(&stream("a"), 4, 9).await.expect("reading")),
        rest[2..]
    );
    assert_eq!(store.head(&stream("a")).await, Ok(6));
    let next = store.append(&lease, vec![message("next")], vec![]).await.expect("appending");
    assert_eq!(next[0].seq, 7);
    store.verify(&stream("a")).await.expect("nothing is damaged");
}

pub async fn a_draft_has_no_key(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let keyed = store.append(&lease, vec![part("x", "w").key("k")], vec![]).await;
    assert!(matches!(keyed, Err(Error::Invalid(_))), "{keyed:?}");
}

// Seen to fail when the epoch begins at 1 again.
pub async fn a_deleted_stream_loses_its_events_and_leases(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let kept = claim(&store, "b").await;
    let events = vec![message("x").key("k"), message("y").key("l")];
    let puts = vec![Put::new("run", "1", json!({})), Put::new("run", "2", json!({}))];
    store.append(&lease, events.clone(), puts).await.expect("appending");
    store.append(&kept, vec![message("kept")], vec![]).await.expect("appending");
    let mut follower = store.follow(&stream("a"));
    let records = vec![("run".into(), "1".into()), ("run".into(), "none".into())];
    store.forget(&stream("a"), records).await.expect("forgetting");
    while follower.changed().await.is_ok() {}
    assert_eq!(store.head(&stream("a")).await, Ok(0));
    assert_eq!(read_all(&store, "a", 9).await, []);
    assert_eq!(store.get("run", "1").await, Ok(None));
    assert!(store.get("run", "2").await.expect("reading").is_some());
    assert_eq!(read_all(&store, "b", 9).await.len(), 1);
    let late = store.append(&lease, vec![message("late")], vec![]).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    // A new claim starts the stream again; the old lease stays invalid.
    let again = store.claim(&stream("a"), "me", LEASE).await.expect("no owner holds it");
    assert!(again.epoch > lease.epoch);
    let late = store.append(&lease, vec![message("late")], vec![]).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    let added = store.append(&again, events, vec![]).await.expect("appending");
    assert_eq!(numbers_and_texts(&added), [(1, "x".into()), (2, "y".into())]);
    store.verify(&stream("a")).await.expect("nothing is damaged");
    store.forget(&stream("unknown"), vec![]).await.expect("there is nothing to do");
}

// Seen to fail when the hash of what was trimmed is not kept.
pub async fn the_rest_of_a_trimmed_stream_can_be_verified(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let events = (0..10).map(message).collect();
    let all = store.append(&lease, events, vec![]).await.expect("appending");
    for before in [0, 1, 4, 4, 2, 8] {
        store.trim(&stream("a"), before).await.expect("trimming");
        store.verify(&stream("a")).await.expect("nothing is damaged");
    }
    assert_eq!(read_all(&store, "a", 2).await, all[7..]);
    assert_eq!(store.read_from(&stream("a"), 3, 9).await, Ok(all[7..].to_vec()));
    store.trim(&stream("a"), 99).await.expect("trimming");
    assert_eq!(read_all(&store, "a", 2).await, []);
    let next = store.append(&lease, vec![message("next")], vec![]).await.expect("appending");
    assert_eq!(next[0].seq, 11);
    assert_eq!(read_all(&store, "a", 2).await, next);
    store.verify(&stream("a")).await.expect("nothing is damaged");
}

pub async fn a_list_can_be_filtered_by_several_values(subject: impl Subject) {
    let store = subject.store();
    for (id, state, session) in
        [("1", "queued", "s"), ("2", "done", "s"), ("3", "running", "s"), ("4", "queued", "t")]
    {
        let body = json!({"state": state, "session": session});
        store.put(vec![Put::new("run", id, body)]).await.expect("a new record");
    }
    let states = ["queued", "running", "it's"].map(str::to_owned).to_vec();
    let any_of = Some(("state".to_owned(), states));
    let field = Some(("session".to_owned(), "s".to_owned()));
    let ids = async |filter: Filter| {
        let found = store.list("run", &filter, &crate::Page::default()).await.expect("listing");
        found.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    let filter = Filter { any_of, ..Filter::default() };
    assert_eq!(ids(filter.clone()).await, ["1", "3", "4"]);
    assert_eq!(ids(Filter { field, ..filter }).await, ["1", "3"]);
}
