//! Damaged files of the server: it does not start and says why, or works without the unreadable parts.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::peak::{Peak, SERVER_LIMIT, add_row, current};
use super::requests::server;
use crate::run::{Ostler, Ran};
use crate::serve_options::Served;

/// The data of a server that has worked and ended.
struct Data {
    ostler: Ostler,
    /// The sessions, each with one run.
    sessions: Vec<String>,
}

impl Data {
    async fn new() -> Self {
        let served = server().await;
        let mut sessions = Vec::new();
        for name in ["alpha", "beta"] {
            let session = served.ask("/sessions", Some(json!({}))).await;
            let id = session["id"].as_str().unwrap().to_owned();
            let path = format!("/sessions/{id}/runs");
            let run = served
                .ask(
                    &path,
                    Some(json!({"prompt": format!("prompt {name} {}", "y".repeat(20_000))})),
                )
                .await;
            served.settled(&format!("/runs/{}", run["id"].as_str().unwrap()), "state").await;
            sessions.push(id);
        }
        Self { ostler: served.end(), sessions }
    }

    fn database(&self) -> PathBuf {
        find(self.ostler.folder.path(), "ostler.db").expect("there is a database")
    }

    fn file(&self, name: &str) -> PathBuf {
        find(self.ostler.folder.path(), name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Starts a server on the data, which must refuse; returns its output.
    fn refused(self, name: &str) -> String {
        let mut child = self.ostler.spawn(&["serve", "--listen", "127.0.0.1:0"]);
        child.stdin = None;
        let (peak, begun) = (Peak::of(child.id()), Instant::now());
        let ran: Ran = tokio::task::block_in_place(|| Ran::of(child));
        let line = ran.stderr.lines().next().unwrap_or_default().to_owned();
        let short: String = line.chars().take(70).collect();
        add_row(&format!("server: {name}"), &short, begun.elapsed(), peak.end(), SERVER_LIMIT);
        assert_eq!(ran.code, Some(1), "{name}: {} {}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("panicked at"), "{}", ran.stderr);
        ran.stderr
    }

    /// Starts a server on the data, which must work; returns the status of each session's log.
    async fn logs(self, name: &str) -> (Served, Vec<u16>) {
        let begun = Instant::now();
        let served =
            Served::again(Script::new().rule(when(), reply().text("Fine.")), self.ostler).await;
        let mut statuses = Vec::new();
        for session in &self.sessions {
            let url = format!("{}/api/sessions/{session}/log", served.base);
            let answer = served.http.get(url).bearer_auth(&served.token).send().await.unwrap();
            statuses.push(answer.status().as_u16());
        }
        let result = format!("starts, logs {statuses:?}");
        let peak = current(served.id());
        add_row(&format!("server: {name}"), &result, begun.elapsed(), peak, SERVER_LIMIT);
        (served, statuses)
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files
        .into_iter()
        .find(|path| path.file_name().is_some_and(|it| it == name))
        .or_else(|| folders.iter().find_map(|folder| find(folder, name)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_a_database_is_not_replaced() {
    let data = Data::new().await;
    let file = data.database();
    fs::OpenOptions::new().write(true).open(&file).unwrap().write_all(&[0xA5; 100]).unwrap();
    let said = data.refused("database with a broken header");
    assert!(said.contains("the store"), "{said}");

    let data = Data::new().await;
    let file = data.database();
    let length = file.metadata().unwrap().len();
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(length / 2).unwrap();
    let said = data.refused("database cut in half");
    assert!(said.contains("the store"), "{said}");

    let data = Data::new().await;
    let file = data.database();
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let said = data.refused("folder in place of the database");
    assert!(said.contains("the store"), "{said}");
}

// Seen to fail without `tell_of_empty_database`.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_is_created_again_and_reported() {
    let data = Data::new().await;
    fs::write(data.database(), "").unwrap();
    let (mut served, statuses) = data.logs("database of length 0").await;
    assert_eq!(statuses, [404, 404]);
    let said = served.errors();
    assert!(said.contains("is empty") && said.contains("ostler restore"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_makes_only_one_session_unreadable() {
    let data = Data::new().await;
    let mut file = fs::OpenOptions::new().read(true).write(true).open(data.database()).unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    // In the middle of the second prompt, which takes more than a page.
    let place = bytes.windows(12).position(|window| window == b"prompt beta ").unwrap();
    file.seek(SeekFrom::Start(place as u64 + 6)).unwrap();
    file.write_all(&[0xFF; 64]).unwrap();
    let (served, statuses) = data.logs("damaged page of the database").await;
    assert_eq!(statuses, [200, 500]);
    let state = served.run(json!({}), "go").await;
    assert_eq!(state, "completed", "other sessions work");
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_in_place_of_the_write_ahead_log_is_ignored() {
    let data = Data::new().await;
    let log = data.database().with_file_name("ostler.db-wal");
    fs::write(log, vec![0xA5; 100_000]).unwrap();
    let (_served, statuses) = data.logs("junk as write-ahead log").await;
    assert_eq!(statuses, [200, 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_does_not_start_with_invalid_tokens_or_users() {
    let data = Data::new().await;
    fs::write(data.file("token"), "").unwrap();
    let said = data.refused("empty token");
    assert!(said.contains("token"), "{said}");

    let data = Data::new().await;
    fs::set_permissions(data.file("token"), fs::Permissions::from_mode(0o644)).unwrap();
    let said = data.refused("token that others can read");
    assert!(said.contains("token"), "{said}");

    let data = Data::new().await;
    let users = data.file("token").with_file_name("users.json");
    fs::write(&users, "{\"users\": [").unwrap();
    fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).unwrap();
    let said = data.refused("broken users.json");
    assert!(said.contains("users.json"), "{said}");
}
