//! The folder: one process at a time, private, and complete after a restart.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use ostler_store::{Due, Error, NewEvent, Put, Sqlite, Store, StreamId, Timestamp};
use serde_json::json;

const LEASE: Duration = Duration::from_secs(10);

fn stream() -> StreamId {
    StreamId::new("a").unwrap()
}

fn message(text: &str) -> NewEvent {
    NewEvent::new("message", json!(text))
}

// Seen to fail without the lock.
#[tokio::test]
async fn opening_a_used_folder_names_the_process_that_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = Sqlite::open(folder.path()).await.unwrap();
    for _ in 0..2 {
        match Sqlite::open(folder.path()).await {
            Err(Error::Open { place, why }) => {
                assert_eq!(place, folder.path().display().to_string());
                let own = format!("another server (process {}) uses it", std::process::id());
                assert!(why.starts_with(&own), "{why}");
            }
            other => panic!("{:?}", other.map(drop)),
        }
    }
    // The refused attempt does not affect the first store.
    first.put(vec![Put::new("note", "n", json!(1))]).await.unwrap();
    drop(first);
    let next = Sqlite::open(folder.path()).await.unwrap();
    assert!(next.get("note", "n").await.unwrap().is_some());
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("new/data");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let check = async |folder: &Path| {
        let store = Sqlite::open(folder).await.unwrap();
        store
            .put(vec![Put::new("note", "n", json!(1)).expected(ostler_store::Expected::Any)])
            .await
            .unwrap();
        store.backup(&folder.join("copy.db")).await.unwrap();
        assert_eq!(mode(folder), 0o700);
        let files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 4, "database, log, lock and copy: {files:?}");
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        std::fs::remove_file(folder.join("copy.db")).unwrap();
    };
    check(&folder).await;
    // Also if its permissions were loosened meanwhile.
    for (path, open) in [(folder.clone(), 0o755), (folder.join("ostler.db"), 0o644)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(open)).unwrap();
    }
    check(&folder).await;
}

// Seen to fail when leases on streams, or claims on timers, outlive the process.
#[tokio::test]
async fn leases_and_claims_end_with_their_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let old = store.claim(&stream(), "old", Duration::from_secs(1_000_000)).await.unwrap();
    store.append(&old, vec![message("x").key("k")], vec![]).await.unwrap();
    let due = Due { id: "d".to_owned(), at: Timestamp::default(), body: json!(1).into() };
    store.schedule(due).await.unwrap();
    let claim = store.claim_due("old", Duration::from_secs(1_000_000), 9).await.unwrap().remove(0);
    drop(store);

    let store = Sqlite::open(folder.path()).await.unwrap();
    let new = store.claim(&stream(), "new", LEASE).await.unwrap();
    assert!(new.epoch > old.epoch);
    let late = store.append(&old, vec![message("y")], vec![]).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    let again = store.append(&new, vec![message("x").key("k")], vec![]).await.unwrap();
    assert_eq!(again[0].seq, 1);
    assert!(matches!(store.complete(&claim, None).await, Err(Error::Fenced { .. })));
    let taken = store.claim_due("new", LEASE, 9).await.unwrap().remove(0);
    assert!(taken.epoch > claim.epoch);
    assert!(matches!(store.complete(&claim, None).await, Err(Error::Fenced { .. })));
    store.complete(&taken, None).await.unwrap();
}

#[tokio::test]
async fn a_backup_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    store
        .append(&lease, vec![message("x"), message("y")], vec![Put::new("note", "n", json!(1))])
        .await
        .unwrap();
    let restored = tempfile::tempdir().unwrap();
    let copy = restored.path().join("ostler.db");
    store.backup(&copy).await.unwrap();
    store.append(&lease, vec![message("later")], vec![]).await.unwrap();
    assert!(
        matches!(store.backup(&copy).await, Err(Error::Failed { .. })),
        "the file exists already"
    );

    let restored = Sqlite::open(restored.path()).await.unwrap();
    assert_eq!(restored.head(&stream()).await, Ok(2));
    restored.verify(&stream()).await.unwrap();
    assert!(restored.get("note", "n").await.unwrap().is_some());
    let lease = restored.claim(&stream(), "me", LEASE).await.unwrap();
    assert_eq!(restored.append(&lease, vec![message("z")], vec![]).await.unwrap()[0].seq, 3);
}

#[tokio::test]
async fn dropping_a_store_writes_pending_requests() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    for _ in 0..20 {
        store.append(&lease, vec![message("x").fleeting()], vec![]).await.unwrap();
    }
    drop(store);
    let store = Sqlite::open(folder.path()).await.unwrap();
    assert_eq!(store.head(&stream()).await, Ok(20));
    assert!(!folder.path().join("ostler.db-journal").exists());
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert_eq!(store.get("note", "n").await, Err(Error::Closed));
}
