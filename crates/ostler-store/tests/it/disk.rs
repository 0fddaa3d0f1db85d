//! Disks that are full, that fail, and that corrupt data.

use std::path::Path;
use std::time::Duration;

use ostler_store::{Error, Event, NewEvent, Put, Sqlite, Store, StreamId};
use serde_json::json;

const LEASE: Duration = Duration::from_secs(10);

/// SQLite error codes.
const FULL: i32 = 13;
const IOERR_FSYNC: i32 = 1034;

fn stream() -> StreamId {
    StreamId::new("a").unwrap()
}

fn message(text: &str) -> NewEvent {
    NewEvent::new("message", json!(text))
}

/// Reads everything and checks that nothing is missing or damaged.
async fn read_verified(store: &Sqlite) -> Vec<Event> {
    store.verify(&stream()).await.unwrap();
    let mut events = Vec::<Event>::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let more = store.read_from(&stream(), after, 10_000).await.unwrap();
        if more.is_empty() {
            break;
        }
        events.extend(more);
    }
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(store.head(&stream()).await, Ok(events.len() as u64));
    events
}

// Seen to fail when `judge` treats a full disk as fatal.
#[tokio::test]
async fn a_full_disk_refuses_one_append_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    store.limit_growth(Some(40)).await.unwrap();
    let large = "x".repeat(10_000);
    let mut acknowledged = 0;
    let error = loop {
        let put = Put::new("note", acknowledged.to_string(), json!(1));
        match store.append(&lease, vec![message(&large)], vec![put]).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::Full { place: folder.path().join("ostler.db").display().to_string() });
    assert!(acknowledged > 3, "it was full from the beginning");
    assert_eq!(read_verified(&store).await.len(), acknowledged);
    assert_eq!(store.get("note", &acknowledged.to_string()).await, Ok(None));
    let again = store.append(&lease, vec![message(&large)], vec![]).await;
    assert!(matches!(again, Err(Error::Full { .. })), "{again:?}");

    store.limit_growth(None).await.unwrap();
    let next = store.append(&lease, vec![message(&large)], vec![]).await.unwrap();
    assert_eq!(next[0].seq, acknowledged as u64 + 1);
    assert_eq!(read_verified(&store).await.len(), acknowledged + 1);
}

// Seen to fail when `undo` does not remember which leases lost events.
#[tokio::test]
async fn an_owner_whose_fleeting_events_are_lost_loses_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    let bystander = StreamId::new("b").unwrap();
    let other = store.claim(&bystander, "me", LEASE).await.unwrap();
    store.append(&lease, vec![message("x")], vec![]).await.unwrap();
    store.fail_next_commit(FULL);
    let early = store.append(&lease, vec![message("lost").fleeting()], vec![]).await.unwrap();
    assert_eq!(early[0].seq, 2, "it was answered before the commit");
    // The next append may still share the failing commit; a later one must not take number 2 and continue.
    let mut next = store.append(&lease, vec![message("y")], vec![]).await;
    if matches!(next, Err(Error::Full { .. })) {
        next = store.append(&lease, vec![message("y")], vec![]).await;
    }
    assert!(matches!(next, Err(Error::Fenced { .. })), "{next:?}");
    assert!(matches!(store.renew(&lease, LEASE).await, Err(Error::Fenced { .. })));
    store.append(&other, vec![message("z")], vec![]).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    assert_eq!(store.append(&lease, vec![message("y")], vec![]).await.unwrap()[0].seq, 2);
    assert_eq!(read_verified(&store).await.len(), 2);
}

// Seen to fail when the error is not fatal (the next append succeeds), and when followers are notified in any case.
#[tokio::test]
async fn after_a_failed_sync_nothing_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    store.append(&lease, vec![message("x")], vec![]).await.unwrap();
    let mut follower = store.follow(&stream());
    follower.mark_unchanged();
    store.fail_next_commit(IOERR_FSYNC);
    let failed = store.append(&lease, vec![message("y").key("k")], vec![]).await;
    assert!(matches!(failed, Err(Error::Broken(_))), "{failed:?}");
    // Later appends fail too, also those of other owners.
    assert!(matches!(store.renew(&lease, LEASE).await, Err(Error::Broken(_))));
    let put = store.put(vec![Put::new("note", "n", json!(1))]).await;
    assert!(matches!(put, Err(Error::Broken(_))), "{put:?}");
    let fleeting = store.append(&lease, vec![message("z").fleeting()], vec![]).await;
    assert!(matches!(fleeting, Err(Error::Broken(_))), "{fleeting:?}");
    assert!(follower.changed().await.is_err(), "there is nothing to follow any more");
    assert_eq!(*follower.borrow(), 1);
    assert!(store.follow(&stream()).changed().await.is_err());
    // Earlier events are still readable.
    assert_eq!(read_verified(&store).await.len(), 1);
    drop(store);

    let store = Sqlite::open(folder.path()).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    let again = store.append(&lease, vec![message("y").key("k")], vec![]).await.unwrap();
    assert_eq!(again[0].seq, 2);
    assert_eq!(read_verified(&store).await.len(), 2);
}

// Seen to fail when leases from before are not freed, and when followers are not accepted again.
#[tokio::test]
async fn a_failed_store_can_be_reopened_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    store.append(&lease, vec![message("x")], vec![]).await.unwrap();
    store.fail_commits(IOERR_FSYNC);
    let failed = store.append(&lease, vec![message("y")], vec![]).await;
    assert!(matches!(failed, Err(Error::Broken(_))), "{failed:?}");
    let still = store.reopen().await;
    assert!(matches!(still, Err(Error::Broken(_))), "{still:?}");
    let refused = store.claim(&stream(), "me", LEASE).await;
    assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");

    store.fail_commits(0);
    store.reopen().await.unwrap();
    let late = store.append(&lease, vec![message("late")], vec![]).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    let mut follower = store.follow(&stream());
    follower.mark_unchanged();
    let lease = store.claim(&stream(), "another", LEASE).await.unwrap();
    store.append(&lease, vec![message("z")], vec![]).await.unwrap();
    follower.changed().await.unwrap();
    let texts: Vec<_> = read_verified(&store).await.into_iter().map(|event| event.body).collect();
    assert_eq!(texts, [json!("x").into(), json!("z").into()]);
}

/// Changes the first occurrence of `from` in the database file.
fn damage(folder: &Path, from: &str, to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let path = folder.join("ostler.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(from.len()).position(|bytes| bytes == from.as_bytes());
    let at = at.unwrap_or_else(|| panic!("there is no {from:?}"));
    bytes[at..at + from.len()].copy_from_slice(to);
    std::fs::write(path, bytes).unwrap();
}

async fn three_events(folder: &Path) {
    let store = Sqlite::open(folder).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    for text in ["first-text", "second-text", "third-text"] {
        store.append(&lease, vec![message(text).key(format!("key-{text}"))], vec![]).await.unwrap();
    }
}

// Seen to fail when `read_row` does not compare hashes.
#[tokio::test]
async fn a_changed_byte_is_reported_as_damage() {
    let changes: [(&str, &[u8]); 5] = [
        ("second-text\"", b"second-texT\""),
        ("second-text\"", b"second-text}"),
        ("second-text\"", b"second-\xff\xfe\xfdt\""),
        ("message", b"massage"),
        ("key-second", b"kez-second"),
    ];
    for (from, to) in changes {
        let folder = tempfile::tempdir().unwrap();
        three_events(folder.path()).await;
        damage(folder.path(), from, to);
        let store = Sqlite::open(folder.path()).await.unwrap();
        let verified = store.verify(&stream()).await;
        let Err(Error::Damaged { what, .. }) = verified else { panic!("{from}: {verified:?}") };
        let read = store.read_from(&stream(), 0, 10).await;
        assert!(
            matches!(&read, Err(Error::Damaged { what: read, .. }) if *read == what),
            "{read:?}"
        );
        // Everything before and after the damaged event can be read.
        let number: u64 = what.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(
            store.read_from(&stream(), 0, number as usize - 1).await.unwrap().len() as u64,
            number - 1
        );
        let behind = store.read_from(&stream(), number, 10).await.unwrap();
        assert_eq!(behind.len() as u64, 3 - number);
    }
}

#[tokio::test]
async fn a_missing_event_is_reported_as_damage() {
    for missing in ["seq = 2", "seq = 3", "seq = 1"] {
        let folder = tempfile::tempdir().unwrap();
        three_events(folder.path()).await;
        let connection = rusqlite::Connection::open(folder.path().join("ostler.db")).unwrap();
        connection.execute(&format!("DELETE FROM event WHERE {missing}"), []).unwrap();
        drop(connection);
        let store = Sqlite::open(folder.path()).await.unwrap();
        let verified = store.verify(&stream()).await;
        assert!(matches!(verified, Err(Error::Damaged { .. })), "{missing}: {verified:?}");
    }
}

#[tokio::test]
async fn examine_reports_all_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    for name in ["a", "b", "c"] {
        let lease = store.claim(&StreamId::new(name).unwrap(), "me", LEASE).await.unwrap();
        for number in 0..3 {
            let text = format!("text-{name}-{number}");
            store.append(&lease, vec![message(&text)], vec![]).await.unwrap();
        }
    }
    assert_eq!(store.examine().await, Ok(vec![]));
    drop(store);
    damage(folder.path(), "text-a-1", b"text-a-!");
    damage(folder.path(), "text-c-2", b"text-c-!");
    let store = Sqlite::open(folder.path()).await.unwrap();
    let damaged = store.examine().await.unwrap().into_iter().map(|error| match error {
        Error::Damaged { what, .. } => what,
        error => panic!("{error}"),
    });
    assert_eq!(damaged.collect::<Vec<_>>(), ["event 2 of a", "event 3 of c"]);
}
