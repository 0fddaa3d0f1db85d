//! A host that does not read its messages does not delay callbacks and the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use ostler_sdk::proto::frame::{Frame as _, ToEngine, ToHost};
use ostler_sdk::transport::{Engine, Link, Start, Transport};
use ostler_sdk::{Client, Decision, Error, Options};
use serde_json::json;

use crate::fake::{ANSWERS, Fake, INTRODUCES, within};

/// Sends a thousand messages, then a permission request, and writes its answer to a file.
const ASKS_AFTER_MANY: &str = r#"
read -r prompt
i=0
while [ $i -lt 1000 ]; do
  printf '%s\n' '{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s"}'
  i=$((i+1))
done
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
read -r answer
printf '%s' "$answer" > answer.partial; mv answer.partial answer
"#;

#[tokio::test]
async fn permission_requests_are_answered_while_the_host_does_not_read_messages() {
    let fake = Fake::new(&[INTRODUCES, ASKS_AFTER_MANY, ANSWERS, "cat > /dev/null"]);
    let options = fake.options().on_permission(|_| async { Decision::allow() });
    let mut client = within(Client::connect(options)).await.unwrap();
    client.send("hello").await.unwrap();
    let answer = fake.folder.path().join("answer");
    within(async {
        while !answer.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    let answer = std::fs::read_to_string(answer).unwrap();
    assert!(answer.contains(r#""behavior":"allow""#), "{answer}");
    // Nothing was lost meanwhile.
    let mut count = 0;
    while within(client.next()).await.unwrap().unwrap().as_result().is_none() {
        count += 1;
    }
    assert_eq!(count, 1000);
}

/// Deltas of a response with other messages, a permission request and a malformed message between them.
const MIXES: &str = r#"
read -r prompt
piece() { printf '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}\n' "$1"; }
status='{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s"}'
piece 1; piece 2; echo "$status"; piece 3
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
piece 4
printf '%s\n' '{"type":"stream_event","event":{"type":"content_block_delta"},"session_id":"s","uuid":"u"}'
piece 5
read -r answer
piece 6
"#;

#[tokio::test]
async fn messages_of_all_kinds_arrive_in_order() {
    let fake = Fake::new(&[INTRODUCES, MIXES, ANSWERS, "cat > /dev/null"]);
    let options = fake.options().on_permission(|_| async { Decision::allow() });
    let mut messages = ostler_sdk::query("hello", options);
    let mut received = Vec::new();
    while let Some(message) = within(messages.next()).await {
        received.push(match message {
            Ok(message) if message.as_result().is_some() => "result".to_owned(),
            Ok(message) => message.text_delta().unwrap_or("status").to_owned(),
            Err(error) => format!("{:?}", error.kind()),
        });
    }
    assert_eq!(received.join(" "), "1 2 status 3 4 Protocol 5 6 result");
}

#[tokio::test]
async fn a_listener_has_received_all_messages_before_a_permission_request_is_answered() {
    let fake = Fake::new(&[INTRODUCES, MIXES, ANSWERS, "cat > /dev/null"]);
    let log = Arc::new(std::sync::Mutex::new(String::new()));
    let (received, asked) = (Arc::clone(&log), Arc::clone(&log));
    let options = fake
        .options()
        .on_message(move |message| {
            let text = message.text_delta().unwrap_or("-");
            received.lock().unwrap().push_str(text);
            // A panic of the listener must not disturb the session.
            assert!(text != "5");
        })
        .on_permission(move |_| {
            asked.lock().unwrap().push('?');
            async { Decision::allow() }
        });
    let (messages, _) = crate::fake::run(options).await;
    assert!(messages.iter().any(|message| message.as_result().is_some()), "{messages:?}");
    // The callback may run after later deltas were received, but not before earlier ones.
    let log = log.lock().unwrap();
    assert!(log.starts_with("12-3") && log.replace('?', "") == "12-3456-", "{log}");
}

/// An engine that answers with 200 messages of a megabyte, and counts how many were read from it.
#[derive(Clone)]
struct Talkative(Arc<AtomicUsize>);

const MEGABYTES: usize = 200;

impl Transport for Talkative {
    fn start(&self, _: Start) -> BoxFuture<'static, Result<Link, Error>> {
        let n_read = Arc::clone(&self.0);
        let (to_engine, mut from_host) = tokio::sync::mpsc::channel(8);
        let introduction = async move {
            let Some(ToEngine::ControlRequest(request)) = from_host.recv().await else {
                panic!("initialize comes first")
            };
            // Keeps the channel open without reading the prompt.
            std::mem::forget(from_host);
            let answer = json!({"type": "control_response", "response":
                {"subtype": "success", "request_id": request.request_id, "response": {}}});
            ToHost::from_line(&answer.to_string()).unwrap()
        };
        let long = json!({"type": "system", "subtype": "status", "status": null, "uuid": "u", "session_id": "s",
            "text": "x".repeat(1_000_000)});
        let long = ToHost::from_line(&long.to_string()).unwrap();
        let answers = stream::iter((0..MEGABYTES).map(move |_| {
            n_read.fetch_add(1, Ordering::Relaxed);
            long.clone()
        }));
        let frames = stream::once(introduction).chain(answers).map(Ok).boxed();
        async { Ok(Link::new(to_engine, frames, Nowhere)) }.boxed()
    }
}

struct Nowhere;

impl Engine for Nowhere {
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

#[tokio::test]
async fn an_engine_whose_messages_are_not_read_waits_after_64_megabytes() {
    let n_read = Arc::new(AtomicUsize::new(0));
    let options = Options::new().transport(Talkative(Arc::clone(&n_read)));
    let mut client = within(Client::connect(options)).await.unwrap();
    // Everything is ready at once, so the session reads whenever it may.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let waiting = n_read.load(Ordering::Relaxed);
    assert!((60..=70).contains(&waiting), "{waiting} MB wait for the host");
    let mut count = 0;
    while let Some(message) = within(client.next()).await {
        message.unwrap();
        count += 1;
    }
    assert_eq!(count, MEGABYTES, "nothing is lost");
}
