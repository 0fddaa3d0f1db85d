//! Hooks that a server answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::{calls, specific};
use crate::host::TestHost;

/// A server that answers one request. Returns its address and, later, the request.
async fn server(status: &str, body: &str) -> (String, oneshot::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (asked, request) = oneshot::channel();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = String::new();
        let (head, input) = loop {
            let mut piece = [0; 4096];
            let n = stream.read(&mut piece).await.unwrap();
            text.push_str(&String::from_utf8_lossy(&piece[..n]));
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Ok(input) = serde_json::from_str(body)
            {
                break (head.to_owned(), input);
            }
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
        asked.send((head, input)).unwrap();
    });
    (url, request)
}

async fn text(hooks: Value, script: Script) -> String {
    let mut host = TestHost::with(script, |options| options.hooks = vec![hooks]).await;
    host.prompt("go").await;
    host.result().await.result.unwrap_or_default()
}

fn hook(event: &str, hook: Value) -> Value {
    json!({event: [{"hooks": [hook]}]})
}

#[tokio::test]
async fn a_server_reads_the_event_and_its_answer_counts() {
    let deny = specific(
        "PreToolUse",
        json!({"permissionDecision": "deny", "permissionDecisionReason": "policy"}),
    );
    let (url, asked) = server("200 OK", &deny.to_string()).await;
    let headers = json!({"X-Team": "blue", "X-Secret": "[$HOME]"});
    let hooks = hook("PreToolUse", json!({"type": "http", "url": url, "headers": headers}));
    assert_eq!(text(hooks, calls("Look")).await, "Done: PreToolUse:Look hook error: policy");
    let (head, input) = asked.await.unwrap();
    assert!(head.starts_with("POST /hook") && head.contains("x-team: blue"), "{head}");
    assert!(head.contains("x-secret: []"), "a variable that is not allowed is not sent: {head}");
    assert_eq!(
        (&input["hook_event_name"], &input["tool_name"]),
        (&json!("PreToolUse"), &json!("Look"))
    );
}

#[tokio::test]
async fn an_empty_answer_of_a_server_decides_nothing() {
    let (url, _asked) = server("200 OK", "").await;
    let hooks = hook("PreToolUse", json!({"type": "http", "url": url}));
    assert_eq!(text(hooks, calls("Look")).await, "Done: saw it");
}

#[tokio::test]
async fn a_server_that_fails_or_is_missing_denies_unless_it_may_fail() {
    let (url, _asked) = server("500 Oops", "").await;
    let hooks = hook("PreToolUse", json!({"type": "http", "url": url}));
    assert!(text(hooks, calls("Look")).await.contains("status 500"));
    // The listener of this address is closed.
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let hooks = hook("PreToolUse", json!({"type": "http", "url": closed}));
    assert!(text(hooks, calls("Look")).await.contains("cannot reach its server"));
    let hooks = hook("PreToolUse", json!({"type": "http", "url": closed, "onFailure": "continue"}));
    assert_eq!(text(hooks, calls("Look")).await, "Done: saw it");
}

#[tokio::test]
async fn a_server_that_watches_may_fail() {
    let (url, _asked) = server("404 Not Found", "").await;
    let script = Script::new().rule(when(), reply().text("Done."));
    assert_eq!(text(hook("Stop", json!({"type": "http", "url": url})), script).await, "Done.");
}

/// A server that answers every request. Returns its address and the number of connections.
async fn lasting_server(body: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let n_connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_connections);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut text = String::new();
                let mut piece = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut piece).await {
                    text.push_str(&String::from_utf8_lossy(&piece[..n]));
                    let Some((_, input)) = text.split_once("\r\n\r\n") else { continue };
                    if serde_json::from_str::<Value>(input).is_err() {
                        continue;
                    }
                    text.clear();
                    let n = body.len();
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {n}\r\n\r\n{body}");
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (url, n_connections)
}

// Mutant: a client that is built for every call connects five times.
#[tokio::test]
async fn all_calls_to_a_server_share_a_connection() {
    let (url, n_connections) = lasting_server("{}").await;
    let script = (0..5).fold(Script::new(), |script, turn| {
        script.rule(when().turn(turn), reply().tool_use("Look", json!({"word": "it"})))
    });
    let script = script.rule(when(), reply().text("Done."));
    let hooks = hook("PreToolUse", json!({"type": "http", "url": url}));
    assert_eq!(text(hooks, script).await, "Done.");
    assert_eq!(n_connections.load(Ordering::Relaxed), 1);
}
