//! Prompts with an idempotency key are answered once, however often they are sent.

use futures::future::join_all;
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
    let mut told = Vec::new();
    for _ in 0..2 {
        let mut socket = Socket::open(&client).await;
        socket.say(json!({"type": "prompt", "text": "hello", "key": "k"})).await;
        told.push(socket.hear("accepted").await);
    }
    assert_eq!(told[0], told[1]);
    client.until(told[0]["runId"].as_str().unwrap(), "completed").await;
    let mut socket = Socket::open(&client).await;
    socket.say(json!({"type": "prompt", "text": "other", "key": "k"})).await;
    assert_eq!(socket.hear("error").await["error"]["code"], "key_reused");
    // A key ends with its session.
    let path = format!("/api/sessions/{}", told[0]["sessionId"].as_str().unwrap());
    assert_eq!(client.ask(Method::DELETE, &path, None).await.0, 204);
    desk.clock.advance(std::time::Duration::from_secs(1));
    socket.say(json!({"type": "prompt", "text": "other", "key": "k"})).await;
    let again = socket.hear("accepted").await;
    assert_ne!(again["runId"], told[0]["runId"]);
    client.until(again["runId"].as_str().unwrap(), "completed").await;
}
