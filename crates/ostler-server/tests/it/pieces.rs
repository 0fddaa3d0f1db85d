//! Secrets of the server that an agent learns do not reach clients.

use futures::StreamExt as _;
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::Value;

use crate::desk::{Desk, within};

const CANARY: &str = "canary-0123456789-value";

// Seen to fail when deltas are redacted one by one.
#[tokio::test]
async fn a_secret_split_over_several_deltas_reaches_no_client() {
    let pieces = [
        "The key is cana",
        "ry-01234",
        "56789",
        "-value, and ",
        "sk-ant-aaaabbbb",
        "ccccdddd",
        "eeee. Bye",
    ];
    let script = Script::new().rule(when(), reply().text_pieces(pieces));
    let desk = Desk::with(script, |config| {
        config.env.insert("DEPLOY_TOKEN".to_owned(), CANARY.to_owned());
    })
    .await;
    let client = desk.client();
    let session = client.session().await;
    let path = format!("/api/sessions/{session}/events");
    let answer = client.request(Method::GET, &path).send().await.unwrap();
    let run = client.prompt(&session, "What is the key?").await;
    let (mut stream, mut received) = (answer.bytes_stream(), String::new());
    while !received.contains("\"completed\"") {
        received
            .push_str(std::str::from_utf8(&within(stream.next()).await.unwrap().unwrap()).unwrap());
    }
    let done = client.until(&run, "completed").await;
    let data = received.lines().filter_map(|line| line.strip_prefix("data: "));
    let deltas: String = data
        .filter_map(|data| {
            let body: Value = serde_json::from_str(data).unwrap();
            body["message"]["event"]["delta"]["text"].as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(deltas, "The key is [redacted DEPLOY_TOKEN], and [redacted]. Bye");
    let log = client.log(&session).await;
    for text in [Value::from(log).to_string(), received, done.to_string()] {
        for part in ["ry-01234", "56789", "-value", "aaaabbbb", "ccccdddd"] {
            assert!(!text.contains(part), "{part} is in {text}");
        }
    }
}
