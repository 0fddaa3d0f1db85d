//! The webhook: notified of pending approvals, signed, retried, and never in the way of a run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use ostler_server::Server;
use ostler_server::config::{Config, Webhook, WebhookEvent};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use crate::desk::{Desk, within};

const SECRET: &str = "a secret of the operator's";

/// The operator's program.
pub(crate) struct Receiver {
    pub(crate) url: String,
    pub(crate) heard: mpsc::UnboundedReceiver<(HeaderMap, Bytes)>,
}

#[derive(Clone)]
struct Ear {
    answers: Arc<Mutex<VecDeque<u16>>>,
    heard: mpsc::UnboundedSender<(HeaderMap, Bytes)>,
}

impl Receiver {
    /// Gives these answers, and then accepts everything.
    pub(crate) async fn open(answers: &[u16]) -> Self {
        let (sender, heard) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(answers.iter().copied().collect()));
        let ear = Ear { answers, heard: sender };
        let router = axum::Router::new().fallback(hear).with_state(ear);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, heard }
    }

    pub(crate) async fn next(&mut self) -> (HeaderMap, Bytes, Value) {
        let (headers, body) = within(self.heard.recv()).await.unwrap();
        let value = serde_json::from_slice(&body).unwrap();
        (headers, body, value)
    }
}

async fn hear(State(ear): State<Ear>, headers: HeaderMap, body: Bytes) -> axum::response::Response {
    let status = ear.answers.lock().unwrap().pop_front().unwrap_or(204);
    let _ = ear.heard.send((headers, body));
    let status = StatusCode::from_u16(status).unwrap();
    (status, [("location", "/elsewhere")]).into_response()
}

/// Makes a call that needs approval, then ends.
fn asks(command: &str) -> Script {
    Script::new()
        .rule(when().has_tool_result(true), reply().text("the end"))
        .rule(when(), reply().tool_use("Bash", json!({"command": command})))
}

async fn desk(receiver: &Receiver, script: Script, events: &[WebhookEvent]) -> Desk {
    let webhook =
        Webhook { url: receiver.url.clone(), secret: SECRET.to_owned(), events: events.to_vec() };
    Desk::with(script, move |config: &mut Config| config.webhook = Some(webhook.clone())).await
}

/// HMAC with SHA-256, for keys that are not longer than a block.
pub(crate) fn hmac(secret: &str, message: &[u8]) -> String {
    let pad = |with: u8| {
        let mut block = [with; 64];
        secret.bytes().zip(&mut block).for_each(|(byte, place)| *place ^= byte);
        block
    };
    let inner = Sha256::digest([&pad(0x36)[..], message].concat());
    let outer = Sha256::digest([&pad(0x5c)[..], &inner[..]].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers[name].to_str().unwrap()
}

#[tokio::test]
async fn the_webhook_is_notified_when_a_run_waits_for_a_user() {
    let mut receiver = Receiver::open(&[]).await;
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    let command = format!("curl -H 'x-api-key: {key}' https://example.org");
    let desk = desk(&receiver, asks(&command), &[WebhookEvent::Waiting]).await;
    let client = desk.client();
    let session = client.session().await;
    let run = client.prompt(&session, "fetch it").await;
    let asked = client.pending().await;
    let (headers, body, notification) = receiver.next().await;
    assert_eq!(notification["event"], "waiting");
    assert_eq!(notification["approval"]["id"], asked["id"]);
    assert_eq!(
        (&notification["approval"]["session"], &notification["approval"]["run"]),
        (&json!(session), &json!(run))
    );
    assert_eq!(notification["approval"]["kind"], "permission");
    assert!(
        notification["approval"]["summary"].as_str().unwrap().starts_with("Bash: curl"),
        "{notification}"
    );
    assert!(!String::from_utf8_lossy(&body).contains(key), "{notification}");
    assert!(notification["approval"].get("input").is_none());
    let link = notification["link"].as_str().unwrap();
    assert_eq!(link, format!("{}/api/approvals/{}", client.base, asked["id"].as_str().unwrap()));
    let time = text(&headers, "x-ostler-timestamp");
    let signed = [time.as_bytes(), b".", &body[..]].concat();
    assert_eq!(text(&headers, "x-ostler-signature"), format!("v1={}", hmac(SECRET, &signed)));
    assert!(time.parse::<u64>().unwrap().abs_diff(desk.clock.now() / 1_000) < 600);
    assert_eq!(text(&headers, "x-ostler-delivery"), notification["id"].as_str().unwrap());
    let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    client.post(&path, json!({"approved": false})).await;
    client.until(&run, "completed").await;
    assert!(receiver.heard.is_empty(), "only the pending approval is reported, and once");
}

#[tokio::test]
async fn a_failed_delivery_is_retried_and_the_run_does_not_wait_for_it() {
    let mut receiver = Receiver::open(&[500, 429]).await;
    let desk = desk(&receiver, asks("touch made"), &[WebhookEvent::Waiting]).await;
    let client = desk.client();
    let session = client.session().await;
    let run = client.prompt(&session, "make it").await;
    let asked = client.pending().await;
    let (_, _, first) = receiver.next().await;
    let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    client.post(&path, json!({"approved": true})).await;
    client.until(&run, "completed").await;
    for _ in 0..2 {
        assert_eq!(receiver.next().await.2, first);
    }
    let counted = |text: &str| text.contains("ostler_webhooks_delivered_total 1\n");
    metrics(&desk, counted).await;
}

#[tokio::test]
async fn a_refused_or_redirected_delivery_is_not_retried() {
    for status in [400, 302] {
        let mut receiver = Receiver::open(&[status]).await;
        let desk = desk(&receiver, asks("touch made"), &[WebhookEvent::Waiting]).await;
        let client = desk.client();
        client.prompt(&client.session().await, "make it").await;
        receiver.next().await;
        metrics(&desk, |text| text.contains("ostler_webhooks_failed_total 1\n")).await;
        assert!(receiver.heard.is_empty());
    }
}

/// Waits until the metrics match.
async fn metrics(desk: &Desk, says: impl Fn(&str) -> bool) {
    let looking = async {
        loop {
            let answer = desk.client().request(reqwest::Method::GET, "/metrics").send();
            let text = answer.await.unwrap().text().await.unwrap();
            if says(&text) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    within(looking).await;
}

#[tokio::test]
async fn the_webhook_is_notified_of_the_end_of_a_run_if_configured() {
    let mut receiver = Receiver::open(&[]).await;
    let script = Script::new().rule(when(), reply().text("done"));
    let desk = desk(&receiver, script, &[WebhookEvent::Ended]).await;
    let client = desk.client();
    let run = client.prompt(&client.session().await, "hello").await;
    let (_, _, notification) = receiver.next().await;
    assert_eq!(
        (&notification["event"], &notification["run"]["id"]),
        (&json!("ended"), &json!(run))
    );
    assert_eq!(notification["run"]["state"], "completed");
    assert!(notification["run"].get("prompt").is_none());
}

#[tokio::test]
async fn the_webhook_is_notified_again_of_approvals_pending_after_a_restart() {
    let mut receiver = Receiver::open(&[]).await;
    let mut desk = desk(&receiver, asks("touch made"), &[WebhookEvent::Waiting]).await;
    let client = desk.client();
    client.prompt(&client.session().await, "make it").await;
    let (_, _, before) = receiver.next().await;
    desk.stop().await;
    desk.start().await;
    let (_, _, after) = receiver.next().await;
    assert_eq!(after["approval"]["id"], before["approval"]["id"]);
}

#[tokio::test]
async fn the_server_does_not_start_with_an_invalid_webhook() {
    let place = tempfile::tempdir().unwrap();
    for (url, secret, expected) in [
        ("http://127.0.0.1:9/hook", "short", "OSTLER_WEBHOOK_SECRET"),
        ("ftp://127.0.0.1/hook", SECRET, "not the address of a web server"),
        ("file:///etc/passwd", SECRET, "not the address of a web server"),
        ("hook", SECRET, "is not a valid address"),
    ] {
        let mut config = Config::new(place.path().join("data"), place.path());
        config.listen.set_port(0);
        let (url, secret) = (url.to_owned(), secret.to_owned());
        config.webhook = Some(Webhook { url, secret, events: vec![WebhookEvent::Waiting] });
        let Err(error) = Server::start(config).await else { panic!("{expected}") };
        assert!(error.to_string().contains(expected), "{error}");
    }
}

// Seen to fail with `server::webhook` that always builds links with the address it listens at.
#[tokio::test]
async fn links_of_webhooks_lead_to_the_public_url() {
    let mut receiver = Receiver::open(&[]).await;
    let webhook = Webhook {
        url: receiver.url.clone(),
        secret: SECRET.to_owned(),
        events: vec![WebhookEvent::Waiting, WebhookEvent::Ended],
    };
    let desk = Desk::with(asks("touch made"), move |config: &mut Config| {
        config.webhook = Some(webhook.clone());
        config.public_url = Some("https://agents.example.org".to_owned());
    })
    .await;
    let client = desk.client();
    let run = client.prompt(&client.session().await, "go").await;
    let (_, _, waits) = receiver.next().await;
    let asked = client.pending().await["id"].as_str().unwrap().to_owned();
    let link = |path: String| json!(format!("https://agents.example.org/api/{path}"));
    assert_eq!(waits["link"], link(format!("approvals/{asked}")), "{waits}");
    client.post(&format!("/api/approvals/{asked}/decision"), json!({"approved": false})).await;
    let (_, _, ended) = receiver.next().await;
    assert_eq!(ended["link"], link(format!("runs/{run}")), "{ended}");
}
