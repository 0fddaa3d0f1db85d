//! Events: in order, without gaps, each exactly once.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;

use super::{Subject, body, claim, message, read_all, stream, text};
use crate::{Body, Error, Event, Expected, NewEvent, Put};

/// Far longer than any step here takes; reaching it means that the event never arrives.
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn events_are_numbered_from_one(subject: impl Subject) {
    let store = subject.store();
    assert_eq!(store.head(&stream("a")).await, Ok(0));
    let lease = claim(&store, "a").await;
    assert_eq!(store.append(&lease, vec![], vec![]).await, Ok(vec![]));
    let one =
        store.append(&lease, vec![message("x"), message("y")], vec![]).await.expect("appending");
    let two = store.append(&lease, vec![message("z")], vec![]).await.expect("appending");
    let all: Vec<Event> = one.into_iter().chain(two).collect();
    let notified: Vec<_> = all.iter().map(|event| (event.seq, text(event))).collect();
    assert_eq!(notified, [(1, "x".to_owned()), (2, "y".to_owned()), (3, "z".to_owned())]);
    assert!(all.iter().all(|event| event.kind == "message" && event.stream == lease.stream));
    assert!(all.windows(2).all(|pair| pair[0].at <= pair[1].at), "{all:?}");
    // Reading returns the same events.
    assert_eq!(read_all(&store, "a", 10).await, all);
    assert_eq!(subject.other().head(&stream("a")).await, Ok(3));
    store.verify(&stream("a")).await.expect("nothing is damaged");
}

// Seen to fail when events and records are committed apart, and when a refused request is not rolled back.
pub async fn an_append_is_all_or_nothing(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    store.put(vec![Put::new("task", "t", json!({}))]).await.expect("a new record");
    let puts = || vec![Put::new("note", "n", json!(1)), Put::new("task", "t", json!({"x": 1}))];
    let refused = store.append(&lease, vec![message("x"), message("y")], puts()).await;
    let conflict = Error::Conflict { kind: "task".into(), id: "t".into(), found: Some(1) };
    assert_eq!(refused, Err(conflict));
    assert_eq!(store.head(&stream("a")).await, Ok(0));
    assert_eq!(store.get("note", "n").await, Ok(None));
    let puts = puts().into_iter().map(|put| put.expected(Expected::Any)).collect();
    let done = store.append(&lease, vec![message("z")], puts).await.expect("the versions match");
    assert_eq!(done[0].seq, 1, "a refused append must leave no gap");
    let task = store.get("task", "t").await.expect("reading").expect("it is there");
    assert_eq!((task.version, task.body), (2, json!({"x": 1})));
}

// Seen to fail without the lookup of keys.
pub async fn a_known_key_returns_the_stored_event(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let first = store.append(&lease, vec![message("x").key("k")], vec![]).await.expect("appending");
    store.append(&lease, vec![message("between")], vec![]).await.expect("appending");
    let again = store.append(&lease, vec![message("other").key("k")], vec![]).await;
    assert_eq!(again, Ok(first.clone()));
    // Also for the next owner of the stream, and when one request has the key twice.
    let next = claim(&store, "a").await;
    let twice = vec![message("x").key("k"), message("x").key("k")];
    let again = store.append(&next, twice, vec![]).await.expect("appending");
    assert_eq!(again, [first[0].clone(), first[0].clone()]);
    let twice = vec![message("x").key("l"), message("x").key("l")];
    let new = store.append(&next, twice, vec![]).await.expect("appending");
    assert_eq!((new[0].seq, &new[0]), (3, &new[1]));
    assert_eq!(store.head(&stream("a")).await, Ok(3));
    // Keys are unique per stream only.
    let other = claim(&store, "b").await;
    let elsewhere = store.append(&other, vec![message("x").key("k")], vec![]).await;
    assert_eq!(elsewhere.expect("appending")[0].seq, 1);
}

// Seen to fail when only events, not appends, are recognised.
pub async fn a_repeated_append_changes_no_record(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let events = || vec![message("x").key("1"), message("y").key("2")];
    let put = || vec![Put::new("task", "t", json!("done"))];
    let first = store.append(&lease, events(), put()).await.expect("appending");
    // A client that missed the answer repeats the append; the record that exists by now is not a conflict.
    assert_eq!(store.append(&lease, events(), put()).await, Ok(first));
    let task = store.get("task", "t").await.expect("reading").expect("it is there");
    assert_eq!(task.version, 1);
}

pub async fn new_and_known_keys_may_mix(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    store.append(&lease, vec![message("x").key("1")], vec![]).await.expect("appending");
    let mixed = vec![message("w").key("0"), message("x").key("1"), message("y").key("2")];
    let done = store.append(&lease, mixed, vec![Put::new("task", "t", json!(1))]).await;
    let notified: Vec<_> = done.expect("appending").iter().map(|e| (e.seq, text(e))).collect();
    assert_eq!(notified, [(2, "w".to_owned()), (1, "x".to_owned()), (3, "y".to_owned())]);
    assert!(store.get("task", "t").await.expect("reading").is_some());
    assert_eq!(read_all(&store, "a", 10).await.len(), 3);
}

pub async fn an_append_where_only_some_events_have_keys_is_refused(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let mixed = store.append(&lease, vec![message("x").key("1"), message("y")], vec![]).await;
    assert!(matches!(mixed, Err(Error::Invalid(_))), "{mixed:?}");
    assert_eq!(store.head(&stream("a")).await, Ok(0));
}

// Seen to fail when a refused request is not rolled back, and when events and records are committed apart.
pub async fn fifty_concurrent_appenders_leave_no_gap(subject: impl Subject) {
    const APPENDERS: usize = 50;
    const ROUNDS: usize = 20;
    let store = subject.store();
    let lease = claim(&store, "a").await;
    store.put(vec![Put::new("task", "t", json!({}))]).await.expect("a new record");
    let appenders = (0..APPENDERS).map(|who| {
        let (store, lease) = (store.clone(), lease.clone());
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for round in 0..ROUNDS {
                let mut event = message(format!("{who}/{round}"));
                event.durable = round % 2 == 0;
                let added = store.append(&lease, vec![event], vec![]).await.expect("appending");
                acknowledged.push((added[0].seq, text(&added[0])));
                // Some requests in between are refused.
                let refused = vec![Put::new("task", "t", json!({}))];
                let refused = store.append(&lease, vec![message("never")], refused).await;
                assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
            }
            acknowledged
        })
    });
    let mut acknowledged = Vec::new();
    for appender in appenders.collect::<Vec<_>>() {
        let own = appender.await.expect("no panic");
        assert!(own.windows(2).all(|pair| pair[0].0 < pair[1].0), "out of order: {own:?}");
        acknowledged.extend(own);
    }
    // A durable event, so that the fleeting events before it are committed too.
    store.append(&lease, vec![message("end")], vec![]).await.expect("appending");
    acknowledged.sort();
    let read = read_all(&store, "a", 64).await;
    let numbers: Vec<u64> = read.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=(APPENDERS * ROUNDS) as u64 + 1).collect::<Vec<_>>());
    let stored: Vec<_> = read.iter().map(|event| (event.seq, text(event))).collect();
    assert_eq!(stored[..stored.len() - 1], acknowledged);
    store.verify(&stream("a")).await.expect("nothing is damaged");
}

pub async fn fleeting_events_keep_their_order(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    for n in 0..100_u64 {
        let event = if n % 10 == 9 { message(n) } else { message(n).fleeting() };
        let added = store.append(&lease, vec![event], vec![]).await.expect("appending");
        assert_eq!((added[0].seq, text(&added[0])), (n + 1, n.to_string()));
    }
    let read = read_all(&store, "a", 1000).await;
    let texts: Vec<_> = read.iter().map(text).collect();
    assert_eq!(texts, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    // Without a durable event after them they are committed as well, only a little later.
    let mut head = store.follow(&stream("a"));
    store.append(&lease, vec![message("last").fleeting()], vec![]).await.expect("appending");
    let arrived = tokio::time::timeout(PATIENCE, head.wait_for(|head| *head == 101)).await;
    arrived.expect("the event never arrived").expect("the store is open");
    assert_eq!(read_all(&store, "a", 1000).await.len(), 101);
}

pub async fn all_pages_together_are_the_whole_stream(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let events = (0..57).map(message).collect();
    let all = store.append(&lease, events, vec![]).await.expect("appending");
    for page in [1, 2, 10, 56, 57, 58, usize::MAX] {
        assert_eq!(read_all(&store, "a", page).await, all, "in pages of {page}");
    }
    // Events too large for one answer arrive in several.
    let lease = claim(&store, "large").await;
    let large = "x".repeat(3 << 20);
    for _ in 0..6 {
        store.append(&lease, vec![message(large.as_str())], vec![]).await.expect("appending");
    }
    let read = read_all(&store, "large", 1000).await;
    assert_eq!(read.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

pub async fn reading_past_the_end_returns_nothing(subject: impl Subject) {
    let store = subject.store();
    for name in ["a", "never-heard-of"] {
        for after in [0, 1, 7, u64::MAX] {
            assert_eq!(store.read_from(&stream(name), after, 10).await, Ok(vec![]), "{after}");
        }
        assert_eq!(store.head(&stream(name)).await, Ok(0));
        store.verify(&stream(name)).await.expect("there is nothing to be damaged");
        claim(&store, "a").await;
    }
    let lease = claim(&store, "a").await;
    store.append(&lease, vec![message("x")], vec![]).await.expect("appending");
    assert_eq!(store.read_from(&stream("a"), 1, 10).await, Ok(vec![]));
    assert_eq!(store.read_from(&stream("a"), u64::MAX, 10).await, Ok(vec![]));
    assert_eq!(store.read_from(&stream("a"), 0, 0).await, Ok(vec![]));
}

// Seen to fail when followers are notified of a refused request.
pub async fn followers_are_notified_of_new_events(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    store.append(&lease, vec![message("x")], vec![]).await.expect("appending");
    let mut early = store.follow(&stream("a"));
    assert_eq!(*early.borrow_and_update(), 1, "it begins with the current head");
    let mut unborn = store.follow(&stream("b"));
    assert_eq!(*unborn.borrow_and_update(), 0);
    store.append(&lease, vec![message("y"), message("z")], vec![]).await.expect("appending");
    let other = claim(&store, "b").await;
    store.append(&other, vec![message("w")], vec![]).await.expect("appending");
    for (follower, head) in [(&mut early, 3), (&mut unborn, 1)] {
        let notified = tokio::time::timeout(PATIENCE, follower.wait_for(|seq| *seq == head)).await;
        notified.expect("the follower was not notified").expect("the store is open");
    }
    // Not notified of another stream's events, nor of a refused request.
    let refused = vec![Put::new("task", "t", json!(1)).expected(Expected::Version(9))];
    let refused = store.append(&lease, vec![message("never")], refused).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    store.append(&other, vec![message("v")], vec![]).await.expect("appending");
    assert!(!early.has_changed().expect("the store is open"), "notified of {}", *early.borrow());
    store.close().await.expect("closing");
    let ended = tokio::time::timeout(PATIENCE, early.changed())
        .await
        .expect("the follower was not notified");
    assert!(ended.is_err(), "the store is closed, and the follower was not notified");
    assert_eq!(store.append(&lease, vec![message("x")], vec![]).await, Err(Error::Closed));
    assert_eq!(store.head(&stream("a")).await, Err(Error::Closed));
}

// Seen to fail when followers are notified before the commit.
pub async fn an_announced_event_can_be_read(subject: impl Subject) {
    const EVENTS: u64 = 300;
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let readers = (0..8).map(|_| {
        let (reader, mut head) = (store.clone(), store.follow(&stream("a")));
        tokio::spawn(async move {
            let mut seen = 0;
            while seen < EVENTS {
                let announced = *head.wait_for(|head| *head > seen).await.expect("it is open");
                let page = reader.read_from(&stream("a"), seen, 10_000).await.expect("reading");
                let last = page.last().map_or(seen, |event| event.seq);
                assert!(last >= announced, "{announced} was announced, {last} can be read");
                assert!(page.iter().map(|event| event.seq).eq(seen + 1..=last), "a gap");
                seen = last;
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    for n in 0..EVENTS {
        let event = if n % 3 == 0 { message(n) } else { message(n).fleeting() };
        store.append(&lease, vec![event], vec![]).await.expect("appending");
    }
    for reader in readers {
        let read = tokio::time::timeout(PATIENCE, reader).await.expect("the event never arrived");
        read.expect("no panic");
    }
}

pub async fn bodies_are_read_back_as_written(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let nasty =
        ["'; DROP TABLE event; --", "\u{0}\u{1f}\u{7f}", "ä\u{1f40e}\u{fffd}\u{10ffff}", ""];
    let mut bodies: Vec<Body> = nasty.iter().map(|text| body(json!(text))).collect();
    for text in ["1.50", "1e400", "[ 1,2 ]", "{\"a\":1,\"a\":2}", "null", "-0", "{\"b\":1,\"a\":2}"]
    {
        bodies.push(Body::from_text(text.to_owned()).expect("this is JSON"));
    }
    let events = bodies.iter().map(|body| NewEvent::new("odd/kind.x:y-z_1", body.clone()));
    store.append(&lease, events.collect(), vec![]).await.expect("appending");
    let read = read_all(&store, "a", 1000).await;
    let read: Vec<_> = read.into_iter().map(|event| event.body).collect();
    assert_eq!(read, bodies);
    store.verify(&stream("a")).await.expect("nothing is damaged");
}

pub async fn an_event_that_is_too_large_is_refused(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    let large = "x".repeat(65 << 20);
    let event = store.append(&lease, vec![message(large.as_str())], vec![]).await;
    assert!(matches!(event, Err(Error::TooLarge { .. })));
    let put = store.put(vec![Put::new("note", "n", json!(large))]).await;
    assert!(matches!(put, Err(Error::TooLarge { .. })));
    assert_eq!(store.head(&stream("a")).await, Ok(0));
    assert_eq!(store.get("note", "n").await, Ok(None));
    store
        .append(&lease, vec![message("small")], vec![])
        .await
        .expect("the store still accepts appends");
}

pub async fn streams_are_independent(subject: impl Subject) {
    let store = subject.store();
    let names: Vec<String> = (0..20).map(|n| format!("s-{n}")).collect();
    let appenders = names.iter().cloned().map(|name| {
        let store = store.clone();
        tokio::spawn(async move {
            let lease = claim(&store, &name).await;
            for n in 0..10 {
                let event = message(format!("{name} {n}"));
                store.append(&lease, vec![event], vec![]).await.expect("appending");
            }
        })
    });
    for appender in appenders.collect::<Vec<_>>() {
        appender.await.expect("no panic");
    }
    let mut seen = HashSet::new();
    for name in &names {
        let read = read_all(&store, name, 3).await;
        let texts: Vec<_> = read.iter().map(text).collect();
        assert_eq!(texts, (0..10).map(|n| format!("{name} {n}")).collect::<Vec<_>>());
        seen.extend(texts);
    }
    assert_eq!(seen.len(), 200);
}
