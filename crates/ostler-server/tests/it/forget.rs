//! Deleted sessions are gone: from the database, its log, the transcripts and the checkpoints.

use std::path::Path;
use std::time::Duration;

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::json;

use crate::desk::{Desk, within};

const CANARY: &str = "zebra-4711-quagga";

/// The files below a folder that have the text in them, or in their name.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|some| some == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

fn script() -> Script {
    let write = json!({"file_path": "a.txt", "content": format!("new {CANARY}")});
    Script::new()
        .rule(when().has_tool_result(true), reply().text(format!("Wrote {CANARY}")))
        .rule(when().prompt_contains("write"), reply().tool_use("Write", write))
        .rule(when(), reply().text("ok"))
}

// Mutant: transcripts are not removed.
#[tokio::test]
async fn a_deleted_session_is_in_no_file() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    std::fs::write(desk.workspace().join("a.txt"), format!("old {CANARY}")).unwrap();
    let session = client.session().await;
    let kept = client.session().await;
    client.until(&client.prompt(&kept, "stay").await, "completed").await;
    let run = client.prompt(&session, &format!("Read a.txt and write {CANARY}")).await;
    let asked = client.pending().await;
    let id = asked["id"].as_str().unwrap();
    client
        .post(
            &format!("/api/approvals/{id}/decision"),
            json!({"approved": true, "digest": asked["digest"]}),
        )
        .await;
    client.until(&run, "completed").await;
    let before = files_with(desk.data(), CANARY);
    assert!(before.iter().any(|file| file.contains("projects")), "{before:?}");
    let spent = client.get("/api/usage").await["total"].clone();
    let path = format!("/api/sessions/{session}");
    assert_eq!(client.ask(Method::DELETE, &path, None).await.0, 204);
    assert_eq!(files_with(desk.data(), CANARY), Vec::<String>::new());
    assert_eq!(client.ask(Method::GET, &path, None).await.0, 404);
    assert_eq!(client.ask(Method::GET, &format!("/api/runs/{run}"), None).await.0, 404);
    assert_eq!(client.get("/api/usage").await["total"], spent, "sums are kept");
    assert!(!client.log(&kept).await.is_empty(), "others are not touched");
}

#[tokio::test]
async fn a_fork_goes_on_when_its_source_is_deleted() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    let session = client.session().await;
    client.until(&client.prompt(&session, "remember the number 12").await, "completed").await;
    let fork = client.post(&format!("/api/sessions/{session}/fork"), json!({})).await;
    assert_eq!(client.ask(Method::DELETE, &format!("/api/sessions/{session}"), None).await.0, 204);
    let fork = fork["id"].as_str().unwrap();
    client.until(&client.prompt(fork, "go on").await, "completed").await;
    let transcript = desk.api.requests().last().unwrap().transcript();
    assert!(transcript.contains("the number 12"), "{transcript}");
}

// Seen to fail when the age of a session is not looked at.
#[tokio::test]
async fn sessions_are_deleted_when_nothing_happened_for_long() {
    let day = Duration::from_secs(24 * 60 * 60);
    let mut desk = Desk::with(script(), |config| {
        config.keep_sessions = Some(Duration::from_secs(90 * 24 * 60 * 60));
    })
    .await;
    let old = desk.client().session().await;
    desk.clock.advance(60 * day);
    let young = desk.client().session().await;
    desk.clock.advance(31 * day);
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    within(async {
        while client.ask(Method::GET, &format!("/api/sessions/{old}"), None).await.0 != 404 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(client.ask(Method::GET, &format!("/api/sessions/{young}"), None).await.0, 200);
}
