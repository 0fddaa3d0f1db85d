//! Timers: each is claimed by one server at a time, and none is lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{LEASE, Subject, body};
use crate::{Due, Error, Store, Timestamp};

/// Schedules `id` after `wait`.
async fn schedule(store: &Arc<dyn Store>, id: &str, wait: Duration) -> Timestamp {
    let at = store.now().await.expect("the time").after(wait);
    let due = Due { id: id.to_owned(), at, body: body(json!({ "what": id })) };
    store.schedule(due).await.expect("scheduling");
    at
}

async fn due_ids(store: &Arc<dyn Store>) -> String {
    let claims = store.claim_due("me", LEASE, 100).await.expect("claiming");
    claims.into_iter().map(|claim| claim.due.id).collect::<Vec<_>>().join(" ")
}

// Seen to fail when `waiting` does not look at the owner.
pub async fn a_due_timer_is_claimed_once(subject: impl Subject) {
    let stores = [subject.store(), subject.other()];
    for n in 0..60 {
        schedule(&stores[0], &format!("d{n}"), Duration::from_secs(1)).await;
    }
    assert_eq!(due_ids(&stores[1]).await, "", "nothing is due yet");
    subject.pass(Duration::from_secs(2)).await;
    let claimants = (0..10).map(|n: usize| {
        let store = stores[n % 2].clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let owner = format!("claimant {n}");
                let some = store.claim_due(&owner, LEASE, 4).await.expect("claiming");
                assert!(some.len() <= 4);
                if some.is_empty() {
                    return mine;
                }
                mine.extend(some);
                assert!(mine.len() <= 60, "there are only 60 timers");
            }
        })
    });
    let (mut ids, mut epochs) = (HashSet::new(), HashSet::new());
    for claimant in claimants.collect::<Vec<_>>() {
        for claim in claimant.await.expect("no panic") {
            assert_eq!(claim.due.body, body(json!({ "what": claim.due.id })));
            assert!(ids.insert(claim.due.id.clone()), "{} was handed out twice", claim.due.id);
            assert!(epochs.insert(claim.epoch), "two claims have the number {}", claim.epoch);
        }
    }
    assert_eq!(ids.len(), 60);
}

pub async fn the_earliest_timer_is_claimed_first(subject: impl Subject) {
    let store = subject.store();
    for (id, seconds) in [("c", 3), ("a", 1), ("d", 4), ("b", 2), ("z", 100)] {
        schedule(&store, id, Duration::from_secs(seconds)).await;
    }
    subject.pass(Duration::from_secs(50)).await;
    let first = store.claim_due("me", LEASE, 2).await.expect("claiming");
    let first: Vec<_> = first.into_iter().map(|claim| claim.due.id).collect();
    assert_eq!(first, ["a", "b"]);
    assert_eq!(store.claim_due("me", LEASE, 0).await, Ok(vec![]));
    assert_eq!(due_ids(&store).await, "c d");
}

pub async fn an_expired_claim_can_be_taken_over(subject: impl Subject) {
    let store = subject.store();
    let at = schedule(&store, "a", Duration::ZERO).await;
    let lost = store.claim_due("lost", LEASE, 9).await.expect("claiming").remove(0);
    assert_eq!(lost.due.at, at);
    subject.pass(LEASE / 2).await;
    assert_eq!(due_ids(&store).await, "");
    subject.pass(LEASE).await;
    let taken = store.claim_due("other", LEASE, 9).await.expect("claiming").remove(0);
    assert!(taken.epoch > lost.epoch && taken.due == lost.due, "{taken:?} after {lost:?}");
    let late = store.complete(&lost, None).await;
    assert_eq!(late, Err(Error::Fenced { what: "a".to_owned(), epoch: lost.epoch }));
    store.complete(&taken, None).await.expect("the claim is valid");
    assert!(matches!(store.complete(&taken, None).await, Err(Error::Fenced { .. })));
    // An expired claim still counts while no other server has taken it over.
    schedule(&store, "b", Duration::ZERO).await;
    let slow = store.claim_due("slow", LEASE, 9).await.expect("claiming").remove(0);
    subject.pass(LEASE * 3).await;
    store.complete(&slow, None).await.expect("no other server took it");
    assert_eq!(due_ids(&store).await, "");
}

pub async fn a_completed_timer_is_removed_or_rescheduled(subject: impl Subject) {
    let store = subject.store();
    schedule(&store, "once", Duration::ZERO).await;
    schedule(&store, "again", Duration::ZERO).await;
    let next = store.now().await.expect("the time").after(Duration::from_secs(60));
    for claim in store.claim_due("me", LEASE, 9).await.expect("claiming") {
        let next = (claim.due.id == "again").then_some(next);
        store.complete(&claim, next).await.expect("the claim is valid");
    }
    subject.pass(Duration::from_secs(30)).await;
    assert_eq!(due_ids(&store).await, "");
    subject.pass(Duration::from_secs(31)).await;
    let claims = store.claim_due("me", LEASE, 9).await.expect("claiming");
    assert_eq!(claims.len(), 1);
    assert_eq!((claims[0].due.id.as_str(), claims[0].due.at), ("again", next));
}

pub async fn rescheduling_a_timer_invalidates_its_claim(subject: impl Subject) {
    let store = subject.store();
    schedule(&store, "a", Duration::ZERO).await;
    let claim = store.claim_due("me", LEASE, 9).await.expect("claiming").remove(0);
    schedule(&store, "a", Duration::from_secs(5)).await;
    assert!(matches!(store.complete(&claim, None).await, Err(Error::Fenced { .. })));
    assert_eq!(due_ids(&store).await, "", "it was rescheduled");
    subject.pass(Duration::from_secs(6)).await;
    assert_eq!(due_ids(&store).await, "a");
    store.unschedule("a").await.expect("forgetting");
    store.unschedule("a").await.expect("it need not be there");
    subject.pass(LEASE * 2).await;
    assert_eq!(due_ids(&store).await, "");
}

// Seen to fail when the numbers of claims are counted per row.
pub async fn reusing_a_timer_id_does_not_revive_an_old_claim(subject: impl Subject) {
    let store = subject.store();
    schedule(&store, "a", Duration::ZERO).await;
    let old = store.claim_due("me", LEASE, 9).await.expect("claiming").remove(0);
    store.unschedule("a").await.expect("forgetting");
    schedule(&store, "a", Duration::ZERO).await;
    assert!(matches!(store.complete(&old, None).await, Err(Error::Fenced { .. })));
    let new = store.claim_due("me", LEASE, 9).await.expect("claiming").remove(0);
    let late = store.complete(&old, None).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    store.complete(&new, None).await.expect("the claim is valid");
}
