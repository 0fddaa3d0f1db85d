//! Unreadable records, in lists and alone.

use std::sync::Arc;

use ostler_store::{Filter, Page, Put, Sqlite, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Kept, Records, quarantine};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Note {
    id: String,
    owner: String,
    text: String,
}

impl Kept for Note {
    const KIND: &'static str = "note";

    fn id(&self) -> &str {
        &self.id
    }

    fn owner(&self) -> Option<&str> {
        Some(&self.owner)
    }
}

fn note(id: &str) -> Note {
    Note { id: id.to_owned(), owner: "ann".to_owned(), text: "text".to_owned() }
}

async fn store_with(bad: serde_json::Value) -> (tempfile::TempDir, Arc<Sqlite>, Records) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Sqlite::open(folder.path()).await.unwrap());
    let records = Records::new(store.clone());
    records.create(&note("a")).await.unwrap();
    store.put(vec![Put::new("note", "b", bad).owner("ann")]).await.unwrap();
    records.create(&note("c")).await.unwrap();
    (folder, store, records)
}

// Seen to fail when an unreadable record fails the list, and when it is only left out of it.
#[tokio::test]
async fn an_unreadable_record_is_quarantined_and_does_not_fail_a_list() {
    let (_folder, store, records) = store_with(json!({"id": "b", "text": 5})).await;
    let all: Vec<Note> = records.all(Filter::default()).await.unwrap();
    assert_eq!(all, [note("a"), note("c")]);
    let (count, names) = quarantine::found(store.as_ref()).await.unwrap();
    assert_eq!((count, names), (1, vec!["note:b".to_owned()]));
    let kept = store.get("quarantine", "note:b").await.unwrap().unwrap();
    assert_eq!(kept.body["record"]["body"], json!({"id": "b", "text": 5}), "nothing is lost");
    assert_eq!(store.get("note", "b").await, Ok(None));
    records.create(&note("b")).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_record_is_not_found() {
    let (_folder, store, records) = store_with(json!([])).await;
    assert!(records.find::<Note>("b").await.unwrap().is_none());
    assert_eq!(quarantine::found(store.as_ref()).await.unwrap().0, 1);
}

// Seen to fail when it is quarantined like a damaged one.
#[tokio::test]
async fn a_record_of_a_newer_program_stays_where_it_is() {
    let body = json!({"recordFormat": 2, "id": "b", "owner": "ann", "text": "text"});
    let (_folder, store, records) = store_with(body).await;
    let listed: Vec<Note> = records.list(&Filter::default(), &Page::default()).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(records.find::<Note>("b").await.is_err());
    assert_eq!(quarantine::found(store.as_ref()).await.unwrap().0, 0);
    assert!(store.get("note", "b").await.unwrap().is_some());
    let written = note("d").put(ostler_store::Expected::Absent).unwrap();
    assert_eq!(written.body["recordFormat"], 1);
}
