//! Deleted sessions are removed from the database, its log, the transcripts and the checkpoints.

use std::path::Path;
use std::time::Duration;

use ostler_store::{Filter, Page, Put, Store as _};
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Desk, within};

const CANARY: &str = "zebra-4711-quagga";

/// The files below a folder with this text in their content or name.
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

/// The files and folders below a folder with this text in their name.
fn names_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().contains(text) {
            found.push(path.display().to_string());
        } else if path.is_dir() {
            found.extend(names_with(&path, text));
        }
    }
    found
}

/// Adds the transcript of a subagent, next to that of its session. Returns the engine's id of the conversation.
async fn add_subagent(desk: &Desk, session: &str) -> String {
    let stored = desk.store().get("session", session).await.unwrap().unwrap();
    let conversation = stored.body["engineSession"].as_str().unwrap().to_owned();
    let transcript = names_with(desk.data(), &format!("{conversation}.jsonl")).remove(0);
    let folder = Path::new(&transcript).with_extension("").join("subagents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("agent-1.jsonl"), CANARY).unwrap();
    conversation
}

/// The kinds of the records that belong to a session.
async fn records_of(desk: &Desk, session: &str) -> Vec<String> {
    let mut kinds = Vec::new();
    for kind in ostler_core::records::KINDS {
        let all = desk.store().list(kind, &Filter::default(), &Page::default()).await.unwrap();
        if all.iter().any(|it| it.id == session || it.body.to_string().contains(session)) {
            kinds.push(kind.to_owned());
        }
    }
    kinds.sort();
    kinds
}

fn script() -> Script {
    let write = json!({"file_path": "a.txt", "content": format!("new {CANARY}")});
    Script::new()
        .rule(when().has_tool_result(true), reply().text(format!("Wrote {CANARY}")))
        .rule(when().prompt_contains("write"), reply().tool_use("Write", write))
        .rule(when(), reply().text("ok"))
}

/// Writes a file, edits it, and runs a command, all with the canary.
fn script_of_files(workspace: &Path) -> Script {
    let path = workspace.join("a.txt").display().to_string();
    let write = json!({"file_path": path, "content": format!("old {CANARY}")});
    let edit = json!({"file_path": path, "old_string": "old", "new_string": "new"});
    // The rule for it contains its whole text.
    let command = json!({"command": format!("python3 -c 'print(1)' {CANARY}")});
    Script::new()
        .rule(when().prompt_contains("stay"), reply().text("ok"))
        .rule(when().turn(0), reply().tool_use("Write", write))
        .rule(when().turn(1), reply().text("Written."))
        .rule(when().turn(2), reply().tool_use("Edit", edit))
        .rule(when().turn(3), reply().tool_use("Bash", command))
        .rule(when(), reply().text(format!("Wrote {CANARY}")))
}

/// Adds records that no run of this test creates: a request to cancel, and with the canary a picture of an unfinished run, an
/// unreadable record, a firing of a schedule and the thread of an AG-UI client.
async fn add_records(desk: &Desk, session: &str, run: &str) {
    let attached =
        json!({"id": run, "owner": "owner", "content": [{"type": "text", "text": CANARY}]});
    let damaged = |state: Value| json!({"id": "run_damaged", "owner": "owner", "session": session, "prompt": CANARY, "state": state});
    let firing = json!({"id": "firing_x_1", "schedule": "schedule_x", "owner": "owner", "planned": 1, "byHand": false,
        "state": "completed", "retries": 0, "session": session, "run": run, "checkSaid": CANARY, "note": CANARY});
    let put = |kind: &str, id: &str, body: Value| Put::new(kind, id, body).owner("owner");
    let cancel = json!({"id": "run_damaged", "owner": "owner", "session": session});
    let puts = vec![
        put("cancelRequest", "run_damaged", cancel),
        put("thread", session, json!({"id": session, "owner": "owner", "state": CANARY})),
        put("attached", run, attached),
        put("run", "run_damaged", damaged(json!(5))),
        put("firing", "firing_x_1", firing),
    ];
    desk.store().put(puts).await.unwrap();
}

// Mutants, each alone: the transcript, the files next to it, or the copies of files are not removed; usage, audit or firing left
// out of `WITHOUT_TEXT`, or `rule` out of the audit's; any kind left out of `OF_SESSION`; quarantined or attached records, the
// totals, the thread, the record `about`, the keys of prompts, or the record of the deletion stay.
#[tokio::test]
async fn no_file_contains_a_deleted_session() {
    let mut desk = Desk::open(Script::new()).await;
    desk.api = ostler_testkit::ScriptedApi::start(script_of_files(desk.workspace())).await;
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    let session = client.post("/api/sessions", json!({"permissionMode": "acceptEdits"})).await;
    let session = session["id"].as_str().unwrap();
    let kept = client.session().await;
    client.until(&client.prompt(&kept, "stay").await, "completed").await;
    let runs = format!("/api/sessions/{session}/runs");
    let first = client.post(&runs, json!({"prompt": CANARY, "key": "once"})).await;
    let first = first["id"].as_str().unwrap().to_owned();
    client.until(&first, "completed").await;
    let run = client.prompt(session, "Edit it and run the command").await;
    let asked = client.pending().await;
    let id = asked["id"].as_str().unwrap();
    let yes = json!({"approved": true, "digest": asked["digest"], "scope": "session"});
    client.post(&format!("/api/approvals/{id}/decision"), yes).await;
    client.until(&run, "completed").await;
    add_records(&desk, session, &first).await;
    // Reading the damaged record moves it to the quarantine.
    assert_eq!(client.ask(Method::GET, "/api/runs/run_damaged", None).await.0, 404);

    let conversation = add_subagent(&desk, session).await;
    let before = files_with(desk.data(), CANARY);
    for place in ["/projects/", "/file-history/", "ostler.db"] {
        assert!(before.iter().any(|file| file.contains(place)), "{place}: {before:?}");
    }
    let stored = async |kind: &str, id: &str| desk.store().get(kind, id).await.unwrap();
    for (kind, id) in [("attached", &*first), ("quarantine", "run:run_damaged")] {
        assert!(stored(kind, id).await.unwrap().body.to_string().contains(CANARY), "{kind}");
    }
    let audit = client.get("/api/audit").await;
    let of_session = |audit: &Value| {
        let all = audit["items"].as_array().unwrap().clone();
        all.into_iter().filter(|it| it["session"] == session).collect::<Vec<_>>()
    };
    let decided = of_session(&audit);
    assert!(decided[0]["rule"].as_str().unwrap().contains(CANARY), "{decided:?}");

    let spent = client.get("/api/usage").await["total"].clone();
    let path = format!("/api/sessions/{session}");
    assert_eq!(client.ask(Method::DELETE, &path, None).await.0, 204);
    assert_eq!(files_with(desk.data(), CANARY), Vec::<String>::new());
    assert_eq!(names_with(desk.data(), &conversation), Vec::<String>::new());
    assert_eq!(records_of(&desk, session).await, ["audit", "firing", "usage"], "without text");
    assert_eq!(client.ask(Method::GET, &path, None).await.0, 404);
    assert_eq!(client.ask(Method::GET, &format!("/api/runs/{run}"), None).await.0, 404);
    let audit = client.get("/api/audit").await;
    assert_eq!(of_session(&audit).len(), decided.len(), "the audit entries of its decisions stay");
    assert!(!audit.to_string().contains(CANARY), "{audit}");
    let firing = stored("firing", "firing_x_1").await.unwrap().body;
    assert_eq!((&firing["state"], firing.get("checkSaid")), (&json!("completed"), None));
    assert_eq!(client.get("/api/usage").await["total"], spent, "the usage totals stay");
    assert!(!client.log(&kept).await.is_empty(), "other sessions do not change");
}

// Mutant: `WITHOUT_TEXT` without tasks.
#[tokio::test]
async fn a_task_whose_session_is_deleted_can_be_executed_again() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    let task = json!({"name": "t", "taskType": "agent", "userPrompt": "hello"});
    let path =
        format!("/api/tasks/{}", client.post("/api/tasks", task).await["id"].as_str().unwrap());
    let executed = client.post(&format!("{path}/execute"), json!({})).await;
    let session = executed["execution"]["session"].as_str().unwrap();
    client.until(executed["execution"]["run"].as_str().unwrap(), "completed").await;
    assert_eq!(client.ask(Method::DELETE, &format!("/api/sessions/{session}"), None).await.0, 204);
    let left = client.get(&path).await;
    assert_eq!((left.get("execution"), &left["status"]), (None, &json!("pending")));
    let again = client.post(&format!("{path}/execute"), json!({})).await;
    client.until(again["execution"]["run"].as_str().unwrap(), "completed").await;
}

// Mutant: files that a fork uses are removed.
#[tokio::test]
async fn a_fork_continues_after_its_source_is_deleted() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    let session = client.session().await;
    client.until(&client.prompt(&session, "remember the number 12").await, "completed").await;
    let fork = client.post(&format!("/api/sessions/{session}/fork"), json!({})).await;
    assert_eq!(client.ask(Method::DELETE, &format!("/api/sessions/{session}"), None).await.0, 204);
    let fork = fork["id"].as_str().unwrap();
    client.until(&client.prompt(fork, "continue").await, "completed").await;
    let transcript = desk.api.requests().last().unwrap().transcript();
    assert!(transcript.contains("the number 12"), "{transcript}");
}

// Mutant: no record of the deletion is written first.
#[tokio::test]
async fn a_deletion_that_was_interrupted_is_completed_at_the_next_start() {
    let mut desk = Desk::open(script()).await;
    let client = desk.client();
    let session = client.session().await;
    let run = client.prompt(&session, CANARY).await;
    client.until(&run, "completed").await;
    let path = format!("/api/sessions/{session}");
    // The place of the transcripts is a file, so they cannot be removed.
    let transcripts = names_with(desk.data(), "projects").remove(0);
    let aside = format!("{transcripts}-aside");
    std::fs::rename(&transcripts, &aside).unwrap();
    std::fs::write(&transcripts, "").unwrap();
    assert_eq!(client.ask(Method::DELETE, &path, None).await.0, 500);
    assert_eq!(client.ask(Method::GET, &path, None).await.0, 404, "nothing can begin in it");
    assert!(!files_with(desk.data(), CANARY).is_empty());
    std::fs::remove_file(&transcripts).unwrap();
    std::fs::rename(&aside, &transcripts).unwrap();
    desk.stop().await;
    desk.start().await;
    within(async {
        while !files_with(desk.data(), CANARY).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    within(async {
        while records_of(&desk, &session).await != ["usage"] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

// Mutant: pending approvals are not looked at, as before.
#[tokio::test]
async fn a_session_that_waits_for_an_answer_is_not_deleted_however_old_it_is() {
    let day = Duration::from_secs(24 * 60 * 60);
    let mut desk = Desk::with(script(), move |config| config.keep_sessions = Some(day)).await;
    let client = desk.client();
    let waiting = client.session().await;
    client.prompt(&waiting, "write").await;
    client.pending().await;
    // The last one that is looked at: when it is gone, the other one stays.
    let idle = client.session().await;
    client.until(&client.prompt(&idle, "hello").await, "completed").await;
    desk.clock.advance(2 * day);
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    let status = async |session: &str| {
        client.ask(Method::GET, &format!("/api/sessions/{session}"), None).await.0
    };
    within(async {
        while status(&idle).await != 404 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(status(&waiting).await, 200);
}

// Seen to fail when the age of a session is not checked.
#[tokio::test]
async fn sessions_without_activity_for_long_are_deleted() {
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
