//! Deleted data is in no file any more; older databases can be read.

use std::path::Path;
use std::time::Duration;

use ostler_store::{NewEvent, Put, Sqlite, Store, StreamId};
use serde_json::json;

const LEASE: Duration = Duration::from_secs(10);

/// The files in the folder that contain the text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if bytes.windows(text.len()).any(|some| some == text.as_bytes()) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

// Mutants: no `secure_delete` (the text stays in the database), no `empty_log` (it stays in the write-ahead log), and no
// `auto_vacuum` (the file stays as large).
#[tokio::test]
async fn no_file_contains_the_text_of_a_deleted_stream() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let stream = StreamId::new("a").unwrap();
    let lease = store.claim(&stream, "me", LEASE).await.unwrap();
    let long = format!("canary-4711 {}", "x".repeat(2_000));
    for number in 0..300 {
        let event = NewEvent::new("said", json!({"text": long, "number": number}));
        let put = Put::new(
            "run",
            number.to_string(),
            json!({"prompt": "canary-4711", "session": "canary-4711"}),
        );
        store.append(&lease, vec![event], vec![put]).await.unwrap();
    }
    store
        .append(&lease, vec![NewEvent::new("said", json!("canary-4711")).draft("w")], vec![])
        .await
        .unwrap();
    let size = || std::fs::metadata(folder.path().join("ostler.db")).unwrap().len();
    assert!(!files_with(folder.path(), "canary-4711").is_empty());
    let records = (0..300).map(|number| ("run".to_owned(), number.to_string())).collect();
    store.forget(&stream, records).await.unwrap();
    assert_eq!(files_with(folder.path(), "canary-4711"), Vec::<String>::new());
    assert!(size() < 200_000, "{} bytes for nothing", size());
    drop(store);
    assert_eq!(files_with(folder.path(), "canary-4711"), Vec::<String>::new());
}

/// A database of the previous version: its tables and its hash chain.
async fn old_database(folder: &Path) {
    let store = Sqlite::open(folder).await.unwrap();
    let lease = store.claim(&StreamId::new("a").unwrap(), "me", LEASE).await.unwrap();
    for number in 0..20 {
        // Text deltas were ordinary events then.
        let event = NewEvent::new("message", json!({"number": number})).fleeting();
        store
            .append(&lease, vec![event], vec![Put::new("note", number.to_string(), json!(number))])
            .await
            .unwrap();
    }
    drop(store);
    let connection = rusqlite::Connection::open(folder.join("ostler.db")).unwrap();
    let back = "DROP INDEX record_session_place;
        DROP INDEX record_session_state;
        DROP INDEX record_space;
        DROP INDEX record_space_owner;
        DROP INDEX record_folder;
        DROP INDEX record_start_session;
        DROP INDEX record_execution_session;
        DROP TABLE draft;
        ALTER TABLE stream DROP COLUMN base;
        ALTER TABLE stream DROP COLUMN base_hash;
        DELETE FROM counter WHERE name = 'forgotten_epoch';
        PRAGMA user_version = 3;
        PRAGMA journal_mode = DELETE;
        PRAGMA auto_vacuum = 0;
        VACUUM;";
    connection.execute_batch(back).unwrap();
}

// Seen to fail without the fourth step.
#[tokio::test]
async fn a_database_of_the_previous_version_can_be_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    old_database(folder.path()).await;
    let store = Sqlite::open(folder.path()).await.unwrap();
    let stream = StreamId::new("a").unwrap();
    store.verify(&stream).await.unwrap();
    let events = store.read_from(&stream, 0, 100).await.unwrap();
    assert_eq!(events.len(), 20);
    let lease = store.claim(&stream, "me", LEASE).await.unwrap();
    let new = vec![
        NewEvent::new("message", json!("part")).draft("w"),
        NewEvent::new("message", json!("whole")).drops("w"),
    ];
    store.append(&lease, new, vec![]).await.unwrap();
    assert_eq!(store.read_from(&stream, 18, 100).await.unwrap().len(), 3);
    store.verify(&stream).await.unwrap();
    assert!(store.examine().await.unwrap().is_empty());
    store.forget(&stream, vec![]).await.unwrap();
    assert_eq!(store.head(&stream).await, Ok(0));
}
