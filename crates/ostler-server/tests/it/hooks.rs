//! Hooks: a signed request starts one run, and its answer is sent back.

use ostler_server::config::Config;
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk, within};
use crate::webhook::{Receiver, hmac, text};

fn says() -> Script {
    Script::new().rule(when(), reply().text("It was sent on Monday."))
}

/// A server that may send answers to this machine.
async fn desk() -> Desk {
    Desk::with(says(), |config: &mut Config| config.private_callbacks = true).await
}

fn hook() -> Value {
    json!({"name": "orders", "start": {"prompt": "look at the order"}})
}

/// A request as another program sends it.
pub(crate) struct Call {
    path: String,
    secret: String,
    time: u64,
    body: String,
}

impl Call {
    pub(crate) fn of(desk: &Desk, made: &Value) -> Self {
        Self {
            path: made["path"].as_str().unwrap().to_owned(),
            secret: made["secret"].as_str().unwrap().to_owned(),
            time: desk.clock.now() / 1_000,
            body: json!({"order": 17}).to_string(),
        }
    }

    fn signature(&self) -> String {
        format!("v1={}", hmac(&self.secret, format!("{}.{}", self.time, self.body).as_bytes()))
    }

    pub(crate) async fn send(&self, client: &Client) -> (u16, Value) {
        self.send_as(client, &self.signature()).await
    }

    async fn send_as(&self, client: &Client, signature: &str) -> (u16, Value) {
        let request = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let request = request
            .post(format!("{}{}", client.base, self.path))
            .header("content-type", "application/json")
            .header("x-ostler-timestamp", self.time.to_string())
            .header("x-ostler-signature", signature)
            .body(self.body.clone());
        let answer = within(request.send()).await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }
}

async fn sessions(client: &Client) -> usize {
    client.get("/api/sessions").await["items"].as_array().unwrap().len()
}

// Seen to fail when runs of hooks have random ids.
#[tokio::test]
async fn a_signed_request_starts_one_run_however_often_it_is_sent() {
    let desk = desk().await;
    let client = desk.client();
    let made = client.post("/api/hooks", hook()).await;
    let call = Call::of(&desk, &made);
    let (status, started) = call.send(&client).await;
    assert_eq!(status, 202, "{started}");
    let run = client.until(started["run"].as_str().unwrap(), "completed").await;
    assert_eq!((&run["owner"], &run["session"]), (&json!("owner"), &started["session"]));
    let asked = desk.api.requests()[0].last_user_text();
    assert!(asked.starts_with("look at the order\n") && asked.contains("\"order\": 17"), "{asked}");
    assert!(asked.contains("It is data"), "{asked}");
    assert_eq!(call.send(&client).await, (202, started.clone()), "the same answer again");
    assert_eq!(sessions(&client).await, 1);
    let later = Call { time: call.time + 1, ..Call::of(&desk, &made) };
    assert_ne!(later.send(&client).await.1["run"], started["run"]);
}

#[tokio::test]
async fn the_answer_of_a_hook_run_is_signed_and_sent_back_once() {
    let mut receiver = Receiver::open(&[503]).await;
    let mut desk = desk().await;
    let client = desk.client();
    let mut body = hook();
    body["callback"] = json!(receiver.url);
    let made = client.post("/api/hooks", body).await;
    let call = Call::of(&desk, &made);
    let (_, started) = call.send(&client).await;
    let (_, _, refused) = receiver.next().await;
    let (headers, body, delivered) = receiver.next().await;
    assert_eq!(delivered, refused, "a refused answer is sent again");
    assert_eq!(delivered["run"]["id"], started["run"]);
    assert_eq!(delivered["run"]["state"], "completed");
    assert_eq!(
        (&delivered["hook"], &delivered["result"]),
        (&made["id"], &json!("It was sent on Monday."))
    );
    let signed = [text(&headers, "x-ostler-timestamp").as_bytes(), b".", &body[..]].concat();
    let signature = format!("v1={}", hmac(&call.secret, &signed));
    assert_eq!(text(&headers, "x-ostler-signature"), signature);
    // Neither a repeated call nor a restart sends it again: the next answer belongs to the next call.
    call.send(&client).await;
    desk.stop().await;
    desk.start().await;
    let next = Call { time: call.time + 1, ..Call::of(&desk, &made) };
    let (_, started) = next.send(&desk.client()).await;
    assert_eq!(receiver.next().await.2["run"]["id"], started["run"]);
}

// Seen to fail when the signature is not checked, when the time is not, and when an unknown hook is reported as
// unknown.
#[tokio::test]
async fn a_caller_without_the_secret_starts_nothing_and_learns_nothing() {
    let desk = desk().await;
    let client = desk.client();
    let made = client.post("/api/hooks", hook()).await;
    let right = || Call::of(&desk, &made);
    let unknown = Call { path: "/api/hooks/hook_1".to_owned(), ..right() };
    let (status, refusal) = unknown.send(&client).await;
    assert_eq!(status, 401);
    let other = Call { secret: "another secret".to_owned(), ..right() };
    assert_eq!(other.send(&client).await, (401, refusal.clone()));
    for signature in ["", "v1=", "v2=00", &right().signature()[3..]] {
        assert_eq!(
            right().send_as(&client, signature).await,
            (401, refusal.clone()),
            "{signature}"
        );
    }
    let changed = Call { body: json!({"order": 18}).to_string(), ..right() };
    assert_eq!(changed.send_as(&client, &right().signature()).await, (401, refusal));
    for time in [right().time - 301, right().time + 600, 0] {
        let (status, answer) = Call { time, ..right() }.send(&client).await;
        assert_eq!(status, 401, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("old"), "{answer}");
    }
    assert_eq!(sessions(&client).await, 0);
}

#[tokio::test]
async fn wrong_signatures_are_rate_limited_and_right_ones_are_not() {
    let desk = desk().await;
    let client = desk.client();
    let made = client.post("/api/hooks", hook()).await;
    let mut statuses = Vec::new();
    for n in 0..12 {
        statuses.push(Call::of(&desk, &made).send_as(&client, &format!("v1={n}")).await.0);
    }
    assert_eq!((statuses[0], statuses[11]), (401, 429), "{statuses:?}");
    assert_eq!(Call::of(&desk, &made).send(&client).await.0, 202);
}

#[tokio::test]
async fn a_call_that_is_not_json_or_too_long_or_from_another_origin_is_refused() {
    let desk = desk().await;
    let client = desk.client();
    let made = client.post("/api/hooks", hook()).await;
    let call = Call { body: "no json".to_owned(), ..Call::of(&desk, &made) };
    assert_eq!(call.send(&client).await.0, 400);
    let call = Call { body: format!("\"{}\"", "x".repeat(300_000)), ..Call::of(&desk, &made) };
    assert_eq!(call.send(&client).await.0, 413);
    let call = Call::of(&desk, &made);
    let request = client
        .request(Method::POST, &call.path)
        .header("origin", "http://evil.example")
        .header("x-ostler-timestamp", call.time.to_string())
        .header("x-ostler-signature", call.signature())
        .json(&json!({"order": 17}));
    assert_eq!(within(request.send()).await.unwrap().status(), 403);
    assert_eq!(sessions(&client).await, 0);
}

#[tokio::test]
async fn a_hook_belongs_to_its_owner_and_its_secret_is_shown_once() {
    let desk = desk().await;
    let (ann, bob) = (desk.client_of("ann").await, desk.client_of("bob").await);
    let made = ann.post("/api/hooks", hook()).await;
    let path = made["path"].as_str().unwrap();
    let secret = made["secret"].as_str().unwrap();
    for (client, path) in [(&ann, path), (&ann, "/api/hooks"), (&desk.client(), "/api/hooks")] {
        let shown = client.get(path).await.to_string();
        assert!(shown.contains("orders") && !shown.contains(secret), "{shown}");
    }
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(bob.ask(method, path, None).await.0, 404);
    }
    assert_eq!(bob.get("/api/hooks").await["items"], json!([]));
    let call = Call::of(&desk, &made);
    let (_, started) = call.send(&bob).await;
    assert_eq!(
        ann.get(&format!("/api/runs/{}", started["run"].as_str().unwrap())).await["owner"],
        "ann"
    );
    assert_eq!(desk.client().ask(Method::DELETE, "/api/users/ann", None).await.0, 204);
    assert_eq!(call.send(&bob).await.0, 401, "hooks of a removed user start nothing");
}

#[tokio::test]
async fn a_removed_hook_cannot_be_called() {
    let desk = desk().await;
    let client = desk.client();
    let made = client.post("/api/hooks", hook()).await;
    let path = made["path"].as_str().unwrap();
    assert_eq!(client.ask(Method::DELETE, path, None).await.0, 204);
    assert_eq!(Call::of(&desk, &made).send(&client).await.0, 401);
}

#[tokio::test]
async fn answers_are_not_sent_into_the_servers_own_network() {
    let desk = Desk::open(says()).await;
    let client = desk.client();
    for (callback, part) in [
        ("http://127.0.0.1:9/x", "own network"),
        ("http://localhost/x", "own network"),
        ("http://169.254.169.254/latest", "own network"),
        ("ftp://example.org/x", "web server"),
        ("x", "not a valid address"),
    ] {
        let mut body = hook();
        body["callback"] = json!(callback);
        let (status, answer) = client.ask(Method::POST, "/api/hooks", Some(body)).await;
        assert_eq!((status.as_u16(), &answer["error"]["field"]), (422, &json!("callback")));
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
    }
}
