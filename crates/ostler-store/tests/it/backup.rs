//! Backups, restored and checked.

use std::path::Path;
use std::time::Duration;

use ostler_store::sqlite::{back_up, check, restore};
use ostler_store::{Error, NewEvent, Put, Sqlite, Store, StreamId};
use serde_json::json;

const LEASE: Duration = Duration::from_secs(60);

fn stream() -> StreamId {
    StreamId::new("a").unwrap()
}

async fn fill(folder: &Path, count: u64) {
    let store = Sqlite::open(folder).await.unwrap();
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    for number in 0..count {
        let event = NewEvent::new("said", json!({"text": format!("text-{number}-end")}));
        let put = Put::new("note", number.to_string(), json!(number));
        store.append(&lease, vec![event], vec![put]).await.unwrap();
    }
}

async fn count(folder: &Path) -> u64 {
    let store = Sqlite::open(folder).await.unwrap();
    store.verify(&stream()).await.unwrap();
    store.head(&stream()).await.unwrap()
}

// Seen to fail when only the first pages are copied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_during_writes_has_everything_up_to_one_moment() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = std::sync::Arc::new(Sqlite::open(folder.path()).await.unwrap());
    let lease = store.claim(&stream(), "me", LEASE).await.unwrap();
    let (written, stop) =
        (store.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let ends = stop.clone();
    let writing = tokio::spawn(async move {
        let mut number = 0_u64;
        while !ends.load(std::sync::atomic::Ordering::Relaxed) {
            number += 1;
            let put = Put::new("note", number.to_string(), json!(number));
            let event = NewEvent::new("said", json!(number));
            written.append(&lease, vec![event], vec![put]).await.unwrap();
        }
    });
    let mut head = store.follow(&stream());
    for copy in 0..5_u64 {
        head.wait_for(|head| *head > 20 * (copy + 1)).await.unwrap();
        let before = store.head(&stream()).await.unwrap();
        let file = other.path().join(format!("{copy}.db"));
        // By folder, as another process does it, while the store is open.
        back_up(folder.path(), &file).await.unwrap();
        assert_eq!(check(&file).await.unwrap(), []);
        let place = other.path().join(copy.to_string());
        assert_eq!(restore(&file, &place, false).await.unwrap(), None);
        let restored = Sqlite::open(&place).await.unwrap();
        restored.verify(&stream()).await.unwrap();
        let head = restored.head(&stream()).await.unwrap();
        assert!(head >= before, "{head} of at least {before}");
        // Event and record were written together, so both are in the backup.
        assert!(restored.get("note", &head.to_string()).await.unwrap().is_some());
        assert!(restored.get("note", &(head + 1).to_string()).await.unwrap().is_none());
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writing.await.unwrap();
}

// Mutant: `restore` without the check of the backup; without the check whether the folder is empty.
#[tokio::test]
async fn restore_refuses_a_used_folder_and_a_damaged_backup() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(folder.path(), 3).await;
    let file = other.path().join("copy.db");
    back_up(folder.path(), &file).await.unwrap();
    fill(&other.path().join("more"), 5).await;
    let place = other.path().join("more");
    let refused = restore(&file, &place, false).await;
    assert!(
        matches!(&refused, Err(Error::Open { why, .. }) if why.contains("--force")),
        "{refused:?}"
    );
    assert_eq!(count(&place).await, 5);
    // Not while a server uses it, even with force.
    let store = Sqlite::open(&place).await.unwrap();
    let used = restore(&file, &place, true).await;
    assert!(matches!(used, Err(Error::Open { .. })), "{used:?}");
    drop(store);
    let kept = restore(&file, &place, true).await.unwrap().expect("something was there");
    assert_eq!(count(&place).await, 3);
    assert_eq!(check(&kept).await.unwrap(), []);
    // The replaced contents can be restored too.
    restore(&kept, &place, true).await.unwrap();
    assert_eq!(count(&place).await, 5);
    // A backup with a changed byte is refused, and changes nothing.
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(6).position(|some| some == b"text-1").unwrap();
    bytes[at] = b'T';
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(check(&file).await.unwrap().len(), 1);
    let damaged = restore(&file, &place, true).await;
    assert!(
        matches!(&damaged, Err(Error::Failed { why, .. }) if why.contains("damaged")),
        "{damaged:?}"
    );
    assert_eq!(count(&place).await, 5);
    std::fs::write(&file, "not a database").unwrap();
    assert!(restore(&file, &place, true).await.is_err());
    assert!(check(&other.path().join("none.db")).await.is_err());
    assert_eq!(count(&place).await, 5);
}
