//! Leases: one owner at a time, and a lost lease stays lost.

use std::time::Duration;

use super::{LEASE, Subject, claim, message, read_all, stream};
use crate::{Error, Put};

pub async fn only_one_owner_holds_a_stream(subject: impl Subject) {
    let (here, there) = (subject.store(), subject.other());
    let lease = here.claim(&stream("a"), "here", LEASE).await.expect("the first claim");
    match there.claim(&stream("a"), "there", LEASE).await {
        Err(Error::Held { stream, by, until }) => {
            assert_eq!((stream, by.as_str(), until), (lease.stream.clone(), "here", lease.until));
        }
        other => panic!("a second claim got {other:?}"),
    }
    there.claim(&stream("b"), "there", LEASE).await.expect("another stream is free");
    subject.pass(LEASE).await;
    let next = there.claim(&stream("a"), "there", LEASE).await.expect("the first has run out");
    assert!(next.epoch > lease.epoch, "{next:?} after {lease:?}");
}

// Seen to fail when `held` compares neither epoch nor owner.
pub async fn an_old_epoch_cannot_append(subject: impl Subject) {
    let (here, there) = (subject.store(), subject.other());
    let old = here.claim(&stream("a"), "here", LEASE).await.expect("the first claim");
    here.append(&old, vec![message(1)], vec![]).await.expect("the lease is valid");
    subject.pass(LEASE + Duration::from_secs(1)).await;
    // Expired, but not claimed by another owner, so no other owner can have written.
    here.append(&old, vec![message(2)], vec![]).await.expect("the lease is still valid");
    let new = there.claim(&stream("a"), "there", LEASE).await.expect("it has run out");
    let fenced = Error::Fenced { what: "a".to_owned(), epoch: old.epoch };
    let put = Put::new("note", "x", 1.into());
    assert_eq!(here.append(&old, vec![message(3)], vec![put]).await, Err(fenced.clone()));
    assert_eq!(here.append(&old, vec![message(3).fleeting()], vec![]).await, Err(fenced.clone()));
    assert_eq!(here.append(&old, vec![], vec![]).await, Err(fenced.clone()));
    assert_eq!(here.renew(&old, LEASE).await, Err(fenced.clone()));
    assert_eq!(here.release(&old).await, Err(fenced));
    there.append(&new, vec![message(4)], vec![]).await.expect("the new lease is valid");
    let texts: Vec<_> = read_all(&here, "a", 10).await.iter().map(super::text).collect();
    assert_eq!(texts, ["1", "2", "4"]);
    assert_eq!(here.get("note", "x").await, Ok(None));
}

// Seen to fail when `held` does not compare owners.
pub async fn a_released_lease_cannot_append(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    store.release(&lease).await.expect("the lease is valid");
    assert!(matches!(
        store.append(&lease, vec![message(1)], vec![]).await,
        Err(Error::Fenced { .. })
    ));
    assert!(matches!(store.renew(&lease, LEASE).await, Err(Error::Fenced { .. })));
    assert!(matches!(store.release(&lease).await, Err(Error::Fenced { .. })));
    let next = store.claim(&stream("a"), "other", LEASE).await.expect("it was released");
    assert!(next.epoch > lease.epoch);
}

pub async fn an_expired_lease_can_be_renewed_until_another_owner_claims_it(subject: impl Subject) {
    let store = subject.store();
    let lease = claim(&store, "a").await;
    subject.pass(LEASE * 2).await;
    let lease = store.renew(&lease, LEASE).await.expect("no other owner claimed it");
    let other = store.claim(&stream("a"), "other", LEASE).await;
    assert!(matches!(other, Err(Error::Held { .. })), "{other:?}");
    subject.pass(LEASE * 2).await;
    store.claim(&stream("a"), "other", LEASE).await.expect("it has run out again");
    assert!(matches!(store.renew(&lease, LEASE).await, Err(Error::Fenced { .. })));
}

// Seen to fail when `renew` does not write the new end.
pub async fn renewing_a_lease_blocks_other_owners(subject: impl Subject) {
    let store = subject.store();
    let mut lease = claim(&store, "a").await;
    for _ in 0..5 {
        subject.pass(LEASE / 2).await;
        let renewed = store.renew(&lease, LEASE).await.expect("the lease is valid");
        assert!(renewed.until > lease.until && renewed.epoch == lease.epoch, "{renewed:?}");
        lease = renewed;
        let other = store.claim(&stream("a"), "other", LEASE).await;
        assert!(matches!(other, Err(Error::Held { .. })), "{other:?}");
    }
}

// Seen to fail when `held` does not compare epochs.
pub async fn an_owner_can_claim_its_own_stream_again(subject: impl Subject) {
    let store = subject.store();
    let first = claim(&store, "a").await;
    let second = claim(&store, "a").await;
    assert!(second.epoch > first.epoch);
    let late = store.append(&first, vec![message(1)], vec![]).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    store.append(&second, vec![message(2)], vec![]).await.expect("the later one counts");
}

// Seen to fail when `claim` does not look at the lease that is there.
pub async fn one_of_many_concurrent_claims_wins(subject: impl Subject) {
    let stores = [subject.store(), subject.other()];
    let racers = (0..20).map(|n| {
        let store = stores[n % 2].clone();
        tokio::spawn(async move { store.claim(&stream("a"), &format!("racer {n}"), LEASE).await })
    });
    let mut winners = Vec::new();
    for racer in racers.collect::<Vec<_>>() {
        match racer.await.expect("no panic") {
            Ok(lease) => winners.push(lease),
            Err(Error::Held { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
}
