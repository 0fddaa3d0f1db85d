//! Wall clocks that are set during operation.

use std::sync::Arc;
use std::time::Duration;

use ostler_store::{Due, Error, NewEvent, Put, Sqlite, Store, StreamId};
use serde_json::json;

use crate::clock::TestClock;

const LEASE: Duration = Duration::from_secs(10);
const TEN_MINUTES: i64 = 600;

// Seen to fail when leases use the wall clock.
#[tokio::test]
async fn setting_the_clock_neither_ends_nor_prolongs_a_lease() {
    for jump in [TEN_MINUTES, -TEN_MINUTES] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
        let store = Sqlite::open_with(folder.path(), Arc::new(clock.clone())).await.unwrap();
        let stream = StreamId::new("a").unwrap();
        store.claim(&stream, "me", LEASE).await.unwrap();
        clock.set_wall(jump);
        clock.pass(LEASE / 2);
        let early = store.claim(&stream, "other", LEASE).await;
        assert!(matches!(early, Err(Error::Held { .. })), "{jump}: {early:?}");
        clock.pass(LEASE / 2);
        store.claim(&stream, "other", LEASE).await.unwrap();
    }
}

// Seen to fail without `max` in `append`.
#[tokio::test]
async fn events_never_go_back_in_time() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let stream = StreamId::new("a").unwrap();
    // Also across a restart.
    for _ in 0..3 {
        let store = Sqlite::open_with(folder.path(), Arc::new(clock.clone())).await.unwrap();
        let lease = store.claim(&stream, "me", LEASE).await.unwrap();
        for jump in [0, 5, -TEN_MINUTES, 1] {
            clock.set_wall(jump);
            store.append(&lease, vec![NewEvent::new("said", json!(1))], vec![]).await.unwrap();
        }
    }
    let store = Sqlite::open_with(folder.path(), Arc::new(clock.clone())).await.unwrap();
    let events = store.read_from(&stream, 0, 100).await.unwrap();
    assert_eq!(events.len(), 12);
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at), "{events:?}");
    store.verify(&stream).await.unwrap();
    let record = store.put(vec![Put::new("note", "n", json!(1))]).await.unwrap().remove(0);
    clock.set_wall(-TEN_MINUTES);
    let changed = store.put(vec![Put::update(record.clone())]).await.unwrap().remove(0);
    assert!(changed.updated >= record.updated);
}

#[tokio::test]
async fn a_completed_timer_is_not_due_again_when_the_clock_is_set_back() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), TestClock::new());
    let store = Sqlite::open_with(folder.path(), Arc::new(clock.clone())).await.unwrap();
    let at = store.now().await.unwrap();
    for id in ["once", "hourly", "running"] {
        store.schedule(Due { id: id.to_owned(), at, body: json!(id).into() }).await.unwrap();
    }
    let claims = store.claim_due("me", LEASE, 9).await.unwrap();
    assert_eq!(claims.len(), 3);
    for claim in &claims {
        let next = (claim.due.id == "hourly").then(|| at.after(Duration::from_secs(3600)));
        if claim.due.id != "running" {
            store.complete(claim, next).await.unwrap();
        }
    }
    for jump in [-TEN_MINUTES, TEN_MINUTES, TEN_MINUTES, -TEN_MINUTES] {
        clock.set_wall(jump);
        assert_eq!(store.claim_due("other", LEASE, 9).await, Ok(vec![]), "{jump}");
    }
    // A running claim lasts exactly as long as it was granted.
    clock.pass(LEASE);
    let ids: Vec<_> = store.claim_due("other", LEASE, 9).await.unwrap();
    assert_eq!(ids.iter().map(|claim| claim.due.id.as_str()).collect::<Vec<_>>(), ["running"]);
}
