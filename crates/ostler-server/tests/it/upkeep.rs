//! Checks and backups that the server makes by itself, and those that its owner requests.

use std::time::Duration;

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Desk, within};

fn says<'a>(doctor: &'a Value, id: &str) -> &'a Value {
    doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap()
}

// Seen to fail when no task maintains the database.
#[tokio::test]
async fn the_database_is_checked_and_backed_up_automatically() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("backups");
    let there = place.clone();
    let desk = Desk::with(Script::new().rule(when(), reply().text("ok")), move |config| {
        config.check_every = Duration::from_millis(20);
        config.backups = Some(there.clone());
    })
    .await;
    let client = desk.client();
    let session = client.session().await;
    client.until(&client.prompt(&session, "hello").await, "completed").await;
    // Without backups that are still being written.
    let made = || {
        let files = std::fs::read_dir(&place).into_iter().flatten();
        let files = files.filter_map(|entry| Some(entry.ok()?.path()));
        files.filter(|path| path.extension().is_some_and(|it| it == "db")).collect::<Vec<_>>()
    };
    let count = || made().len();
    within(async {
        // The test's clock does not advance by itself, and a backup is named by the time.
        while count() < 9 {
            desk.clock.advance(Duration::from_secs(86_400));
            tokio::time::sleep(Duration::from_millis(20)).await;
            if count() == 7 {
                break;
            }
        }
    })
    .await;
    let doctor = client
        .watch("/api/doctor", "a check", |it| {
            says(it, "check")["says"].as_str().unwrap().starts_with("nothing")
        })
        .await;
    assert_eq!(says(&doctor, "backup")["state"], "ok", "{doctor}");
    let newest = made().into_iter().max().unwrap();
    assert_eq!(ostler_server::upkeep::check(&newest).await.unwrap(), []);
}

// Mutant: `back_up` without `require`.
#[tokio::test]
async fn only_the_owner_makes_a_backup() {
    let script = Script::new().rule(when(), reply().text("ok"));
    let desk = Desk::with(script, |config| config.trust_members = true).await;
    let client = desk.client();
    let member = desk.client_of("mia").await;
    assert_eq!(member.ask(Method::POST, "/api/backup", Some(json!({}))).await.0, 403);
    assert!(!desk.data().join("data/backups").exists() && !desk.data().join("backups").exists());
    let session = client.session().await;
    client.until(&client.prompt(&session, "hello").await, "completed").await;
    let made = client.post("/api/backup", json!({})).await;
    let file = std::path::PathBuf::from(made["file"].as_str().unwrap());
    assert_eq!(std::fs::metadata(&file).unwrap().len(), made["bytes"].as_u64().unwrap());
    let other = tempfile::tempdir().unwrap();
    ostler_server::upkeep::restore(&file, other.path(), false).await.unwrap();
    let store = ostler_store::Sqlite::open(other.path().join("log")).await.unwrap();
    use ostler_store::Store as _;
    assert!(store.get("session", &session).await.unwrap().is_some());
}
