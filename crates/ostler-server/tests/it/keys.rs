//! Prompts with an idempotency key run once, however often they are sent.

use futures::future::join_all;
use ostler_store::Store as _;
use ostler_testkit::{Script, reply, when};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::socket::Socket;

fn says() -> Script {
    Script::new().rule(when(), reply().text("once"))
}

async fn send(client: &Client, session: &str, prompt: &str, key: &str) -> (StatusCode, Value) {
    let body = json!({"prompt": prompt, "key": key});
    client.ask(Method::POST, &format!("/api/sessions/{session}/runs"), Some(body)).await
}

// Mutant: `submit` that does not look at the key; `answered` that does not compare digests.
#[tokio::test]
async fn a_prompt_with_a_key_is_answered_once_also_after_a_restart() {
    let mut desk = Desk::open(says()).await;
    let session = desk.client().session().await;
    let client = desk.client();
    let sending = (0..8).map(|_| send(&client, &session, "hello", "k"));
    let sent = join_all(sending).await;
    let first = sent[0].1["id"].as_str().unwrap().to_owned();
    for (status, run) in &sent {
        assert_eq!((status.as_u16(), &run["id"]), (202, &json!(first)), "{run}");
    }
    client.until(&first, "completed").await;
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    let (status, run) = send(&client, &session, "hello", "k").await;
    assert_eq!(
        (status.as_u16(), &run["id"], &run["state"]),
        (202, &json!(first), &json!("completed"))
    );
    let (status, refused) = send(&client, &session, "something else", "k").await;
    assert_eq!((status.as_u16(), &refused["error"]["code"]), (409, &json!("key_reused")));
    let (status, other) = send(&client, &session, "hello", "another").await;
    assert_eq!(status.as_u16(), 202);
    assert_ne!(other["id"], json!(first));
    let (status, _) = send(&client, &session, "hello", "").await;
    assert_eq!(status.as_u16(), 422);
    client.until(other["id"].as_str().unwrap(), "completed").await;
    assert_eq!(desk.api.requests().len(), 2, "one for each key");
}

#[tokio::test]
async fn a_prompt_with_a_key_over_the_websocket_begins_one_session_and_one_run() {
    let desk = Desk::open(says()).await;
    let client = desk.client();
    let mut received = Vec::new();
    for _ in 0..2 {
        let mut socket = Socket::open(&client).await;
        socket.say(json!({"type": "prompt", "text": "hello", "key": "k"})).await;
        received.push(socket.hear("accepted").await);
    }
    assert_eq!(received[0], received[1]);
    client.until(received[0]["runId"].as_str().unwrap(), "completed").await;
    let mut socket = Socket::open(&client).await;
    socket.say(json!({"type": "prompt", "text": "other", "key": "k"})).await;
    assert_eq!(socket.hear("error").await["error"]["code"], "key_reused");
    // A key ends with its session.
    let path = format!("/api/sessions/{}", received[0]["sessionId"].as_str().unwrap());
    assert_eq!(client.ask(Method::DELETE, &path, None).await.0, 204);
    desk.clock.advance(std::time::Duration::from_secs(1));
    socket.say(json!({"type": "prompt", "text": "other", "key": "k"})).await;
    let again = socket.hear("accepted").await;
    assert_ne!(again["runId"], received[0]["runId"]);
    client.until(again["runId"].as_str().unwrap(), "completed").await;
}

// Mutant: `prompt` of the WebSocket that takes room before it looks for the key.
#[tokio::test]
async fn a_repeated_prompt_gets_its_run_also_when_there_is_no_room_for_another_session() {
    let desk = Desk::with(says(), |config| config.limits.sessions_per_user = 1).await;
    let client = desk.client();
    let mut received = Vec::new();
    for _ in 0..2 {
        let mut socket = Socket::open(&client).await;
        socket.say(json!({"type": "prompt", "text": "hello", "key": "k"})).await;
        received.push(socket.hear("accepted").await);
    }
    assert_eq!(received[0], received[1]);
    let mut socket = Socket::open(&client).await;
    socket.say(json!({"type": "prompt", "text": "hello", "key": "another"})).await;
    assert_eq!(socket.hear("error").await["error"]["code"], "too_many_requests");
    client.until(received[0]["runId"].as_str().unwrap(), "completed").await;
    assert_eq!(desk.api.requests().len(), 1);
}

// Mutants: `execute` that passes no key on; `execute_once` that always notes the execution.
#[tokio::test]
async fn a_task_is_executed_once_for_each_key() {
    let mut desk = Desk::with(says(), |config| config.limits.sessions_per_user = 2).await;
    let task = json!({"name": "t", "taskType": "agent", "userPrompt": "hello"});
    let task = desk.client().post("/api/tasks", task).await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/tasks/{task}/execute");
    let client = desk.client();
    let sent = join_all((0..4).map(|_| client.post(&path, json!({"key": "a"})))).await;
    let run = |task: &Value| task["execution"]["run"].as_str().unwrap().to_owned();
    let first = run(&sent[0]);
    assert!(sent.iter().all(|task| run(task) == first), "{sent:?}");
    client.until(&first, "completed").await;
    desk.clock.advance(std::time::Duration::from_secs(1));
    let second = run(&client.post(&path, json!({"key": "b"})).await);
    assert_ne!(second, first);
    client.until(&second, "completed").await;
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    // There is no room for a third session, and it is not needed.
    assert_eq!(run(&client.post(&path, json!({"key": "a"})).await), first);
    let task = client.get(&format!("/api/tasks/{task}")).await;
    assert_eq!(run(&task), second, "the last execution stays the last");
    assert_eq!(client.ask(Method::POST, &path, None).await.0, 429, "without a key");
    assert_eq!(client.ask(Method::POST, &path, Some(json!({"key": ""}))).await.0, 422);
    assert_eq!(desk.api.requests().len(), 2);
}

// Mutants: `run_now` that does not look at the key; `remove_firing` that leaves the key.
#[tokio::test]
async fn a_schedule_is_started_by_hand_once_for_each_key() {
    let desk = Desk::open(says()).await;
    let client = desk.client();
    let plan = json!({"name": "p", "start": {"prompt": "x"}, "when": {"every": "1h"}});
    let id = client.post("/api/schedules", plan).await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/schedules/{id}/run");
    let first = client.post(&path, json!({"key": "a"})).await;
    desk.clock.advance(std::time::Duration::from_secs(1));
    let sent = join_all((0..4).map(|_| client.post(&path, json!({"key": "a"})))).await;
    for again in &sent {
        assert_eq!((&again["id"], &again["key"]), (&first["id"], &json!("a")));
    }
    let second = client.post(&path, json!({"key": "b"})).await;
    let third = client.post(&path, json!({})).await;
    assert!(first["id"] != second["id"] && second["id"] != third["id"]);
    let log = client.get(&format!("/api/schedules/{id}/log")).await;
    assert_eq!(log["items"].as_array().unwrap().len(), 3);
    assert_eq!(client.ask(Method::POST, &path, Some(json!({"key": ""}))).await.0, 422);
    let path = format!("/api/schedules/{id}");
    assert_eq!(client.ask(Method::DELETE, &path, None).await.0, 204);
    let keys = ostler_store::Filter::default();
    assert_eq!(desk.store().count("firingKey", &keys, 10).await.unwrap(), 0);
}
