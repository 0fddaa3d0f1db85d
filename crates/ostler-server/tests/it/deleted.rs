//! Deleting a session cancels its pending work.

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
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

// Mutant: `delete` that closes the worker alone; then the schedule goes on.
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
    delete(&client, &session).await;
    let is_empty = |list: &Value| list["items"] == json!([]);
    client.watch("/api/approvals", "no request", is_empty).await;
}
