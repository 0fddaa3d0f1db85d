//! How much callers without a token may send, and how much one user may use at the same time.

use ostler_testkit::{Script, reply, when};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::desk::{Desk, within};
use crate::socket::Socket;

/// Mutant: `assemble` without `by_path`, and `BodyLimits::bytes` that takes the usual limit for strangers.
#[tokio::test]
async fn a_large_body_of_a_caller_without_a_token_is_not_read() {
    let desk = Desk::open(Script::new()).await;
    for (path, length) in [
        ("/api/hooks/hook_none", 256 * 1024 + 1),
        ("/api/auth/session", 4 * 1024 + 1),
        ("/healthz", 5_000),
    ] {
        let mut stream = TcpStream::connect(desk.address()).await.unwrap();
        let method = if path == "/healthz" { "GET" } else { "POST" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            desk.address()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // Only the head was sent: the answer does not wait for the body.
        let mut answer = [0; 12];
        within(stream.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 413", "{path}");
    }
}

/// Seen to fail with `UserLimit::take` that refuses nothing, and with `UserPermit` that gives nothing back. Mutant: each caller
/// of `take` without the call.
#[tokio::test]
async fn the_sessions_streams_sockets_and_engines_of_one_user_are_limited() {
    let script = Script::new()
        .rule(when().prompt_contains("hold"), reply().hold("held").text("done"))
        .rule(when(), reply().text("hello"));
    let desk = Desk::with(script, |config| {
        let limits = &mut config.limits;
        limits.sessions_per_user = 3;
        limits.streams_per_user = 2;
        limits.sockets_per_user = 2;
        limits.agui_runs_per_user = 0;
        limits.engines_per_user = 1;
    })
    .await;
    let (ada, bob) = (desk.client_of("ada").await, desk.client_of("bob").await);
    let first = ada.session().await;
    let (second, third) = (ada.session().await, ada.session().await);
    let (status, refused) = ada.ask(Method::POST, "/api/sessions", Some(json!({}))).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("delete"), "{refused}");
    let fork = format!("/api/sessions/{first}/fork");
    let events = format!("/api/sessions/{first}/events");
    let open = async || within(ada.request(Method::GET, &events).send()).await.unwrap();
    let streams = (open().await, open().await);
    assert_eq!(open().await.status(), 429, "streams");
    drop(streams);
    let headers = [("authorization", format!("Bearer {}", ada.token))];
    let sockets = (
        Socket::with(&ada.base, &headers).await.unwrap(),
        Socket::with(&ada.base, &headers).await.unwrap(),
    );
    assert_eq!(Socket::with(&ada.base, &headers).await.err(), Some(429), "sockets");
    Socket::open(&bob).await.hear("hello").await;
    drop(sockets);
    let input = json!({"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": []});
    assert_eq!(ada.ask(Method::POST, "/agui", Some(input)).await.0, 429, "AG-UI runs");
    let connect =
        json!({"threadId": first, "runId": "r", "messages": [], "tools": [], "context": []});
    assert_eq!(ada.ask(Method::POST, "/agui/connect", Some(connect)).await.0, 429, "AG-UI streams");
    // One engine, whatever it was started for, until it ends.
    let files = |session: &str| format!("/api/sessions/{session}/files");
    assert_eq!(ada.ask(Method::GET, &files(&first), None).await.0, 200);
    assert_eq!(ada.ask(Method::GET, &files(&second), None).await.0, 429, "engines for files");
    ada.prompt(&first, "hold").await;
    desk.api.gate("held").reached().await;
    let run = ada.prompt(&second, "hello").await;
    let cancelled = ada.prompt(&third, "hello").await;
    let session = bob.session().await;
    let other = bob.prompt(&session, "hello").await;
    bob.until(&other, "completed").await;
    // Runs of other users do not wait. Ada's runs wait, and can be cancelled.
    assert_eq!(ada.get(&format!("/api/runs/{run}")).await["state"], "queued");
    ada.ask(Method::POST, &format!("/api/runs/{cancelled}/cancel"), None).await;
    ada.until(&cancelled, "cancelled").await;
    assert_eq!(ada.get(&format!("/api/runs/{run}")).await["state"], "queued");
    // An idle engine ends to make room.
    desk.api.gate("held").release();
    ada.until(&run, "completed").await;
    assert_eq!(ada.ask(Method::DELETE, &format!("/api/sessions/{first}"), None).await.0, 204);
    assert_eq!(ada.ask(Method::POST, "/api/sessions", Some(json!({}))).await.0, 201, "room again");
    assert_eq!(ada.ask(Method::POST, &fork.replace(&first, &second), Some(json!({}))).await.0, 429);
}

// Seen to fail with `Starter::start` and `Tasks::execute_once` that do not take room.
#[tokio::test]
async fn sessions_of_tasks_schedules_and_hooks_count_like_those_of_users() {
    let script = Script::new().rule(when(), reply().text("hello"));
    let desk = Desk::with(script, |config| config.limits.sessions_per_user = 3).await;
    let client = desk.client();
    let task = json!({"name": "t", "taskType": "agent", "userPrompt": "hello"});
    let task = client.post("/api/tasks", task).await["id"].as_str().unwrap().to_owned();
    let execute = format!("/api/tasks/{task}/execute");
    client.post(&execute, json!({})).await;
    let start = json!({"prompt": "hello"});
    let hook = client.post("/api/hooks", json!({"name": "h", "start": start})).await;
    let call = crate::hooks::Call::of(&desk, &hook);
    assert!(call.send(&client).await.0 < 300);
    let plan = json!({"name": "s", "start": start, "when": {"every": "1h"}});
    let plan = client.post("/api/schedules", plan).await["id"].as_str().unwrap().to_owned();
    let (fire, log) = (format!("/api/schedules/{plan}/run"), format!("/api/schedules/{plan}/log"));
    client.post(&fire, json!({})).await;
    client.watch(&log, "the run", |log| log["items"][0]["state"] == "completed").await;
    assert_eq!(client.get("/api/sessions").await["items"].as_array().unwrap().len(), 3);
    assert_eq!(client.ask(Method::POST, "/api/sessions", Some(json!({}))).await.0, 429, "people");
    assert_eq!(client.ask(Method::POST, &execute, Some(json!({}))).await.0, 429, "tasks");
    assert!(call.send(&client).await.0 < 300, "the same call again is the same run");
    let hook = client.post("/api/hooks", json!({"name": "h2", "start": start})).await;
    assert_eq!(crate::hooks::Call::of(&desk, &hook).send(&client).await.0, 429, "hooks");
    client.ask(Method::POST, &fire, Some(json!({}))).await;
    let refused = |log: &serde_json::Value| {
        log["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it.to_string().contains("the maximum for one user"))
    };
    client.watch(&log, "the reason in the schedule's log", refused).await;
    assert_eq!(client.get("/api/sessions").await["items"].as_array().unwrap().len(), 3);
}
