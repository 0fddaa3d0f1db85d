//! Deleting a session cancels its pending work.

use std::time::Duration;

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk, within};
use crate::socket::Socket;

fn asks() -> Script {
    Script::new().rule(when(), reply().tool_use("Bash", json!({"command": "touch made"})))
}

async fn delete(client: &Client, session: &str) {
    let path = format!("/api/sessions/{session}");
    let (status, answer) = client.ask(Method::DELETE, &path, None).await;
    assert_eq!(status.as_u16(), 204, "{answer}");
}

async fn nothing_waits(client: &Client, runs: &[String]) {
    for run in runs {
        let (status, answer) = client.ask(Method::GET, &format!("/api/runs/{run}"), None).await;
        assert_eq!(status.as_u16(), 404, "{answer}");
    }
    assert_eq!(client.get("/api/approvals").await["items"], json!([]));
}

// Mutants: `forget` without `session_deleted`: then the schedule continues; `delete` without its event.
#[tokio::test]
async fn deleting_a_session_cancels_its_runs_approvals_and_schedules() {
    let desk = Desk::open(asks()).await;
    let client = desk.client();
    let session = client.session().await;
    let runs = [client.prompt(&session, "one").await, client.prompt(&session, "two").await];
    let request = client.pending().await;
    let plan =
        json!({"name": "n", "start": {"session": session, "prompt": "x"}, "when": {"every": "1h"}});
    let schedule = client.post("/api/schedules", plan).await;
    let mut socket = Socket::open(&client).await;
    socket.say(json!({"type": "subscribe", "sessionId": session})).await;
    // The socket receives the session's events from now on.
    socket.hear("prompt").await;
    delete(&client, &session).await;
    nothing_waits(&client, &runs).await;
    let resolved = socket.hear("permission_resolved").await;
    assert_eq!(
        (&resolved["permissionId"], &resolved["state"]),
        (&request["id"], &json!("withdrawn"))
    );
    let notice = socket.hear("notice").await;
    assert_eq!(notice["body"]["deleted"], true, "{notice}");
    let path = format!("/api/schedules/{}", schedule["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await["state"], "ended");
    let path = format!("/api/sessions/{session}/runs");
    let (status, _) = client.ask(Method::POST, &path, Some(json!({"prompt": "more"}))).await;
    assert_eq!(status.as_u16(), 404);
    assert!(!desk.workspace().join("made").exists());
}

// Mutant: `delete` without `withdraw_session`: nobody works on the session, so nobody takes the request back.
#[tokio::test]
async fn deleting_a_session_withdraws_the_approvals_of_an_interrupted_run() {
    let mut desk = Desk::open(asks()).await;
    let session = desk.client().session().await;
    let run = desk.client().prompt(&session, "one").await;
    desk.client().pending().await;
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    client.until(&run, "interrupted").await;
    let mut socket = Socket::open(&client).await;
    socket.say(json!({"type": "subscribe", "sessionId": session})).await;
    // The socket receives the session's events from now on.
    socket.hear("prompt").await;
    delete(&client, &session).await;
    assert_eq!(socket.hear("permission_resolved").await["state"], "withdrawn");
    let is_empty = |list: &Value| list["items"] == json!([]);
    client.watch("/api/approvals", "no request", is_empty).await;
}

// Mutant: `delete` without `close`: the command in the background continues until the worker finds its lease gone. A worker with
// an active run notices that sooner, because it cannot write.
#[tokio::test]
async fn deleting_a_session_ends_its_commands() {
    for in_background in [false, true] {
        let wait =
            json!({"command": "echo $$ > pid; exec sleep 600", "run_in_background": in_background});
        let script = Script::new()
            .rule(when().has_tool_result(true), reply().text("It runs."))
            .rule(when(), reply().tool_use("Bash", wait));
        let desk = Desk::with(script, |config| {
            config.allow_bypass = true;
            config.limits.lease = Duration::from_secs(60 * 60);
        })
        .await;
        let client = desk.client();
        let made =
            client.post("/api/sessions", json!({"permissionMode": "bypassPermissions"})).await;
        let session = made["id"].as_str().unwrap();
        let run = client.prompt(session, "wait").await;
        let pid = || std::fs::read_to_string(desk.workspace().join("pid")).unwrap_or_default();
        within(async {
            while !pid().ends_with('\n') {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        if in_background {
            client.until(&run, "completed").await;
        }
        let stat = format!("/proc/{}/stat", pid().trim());
        let is_alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
        assert!(is_alive());
        delete(&client, session).await;
        within(async {
            while is_alive() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}
