//! HTTP: refusals, limits, keep-alive.

use std::time::Duration;

use ostler_agui::event::Body;
use ostler_testkit::{Script, reply as model, when};
use serde_json::{Value, json};

use super::stage::*;

fn hello() -> Script {
    Script::new().rule(when(), model().text("Hello"))
}

#[tokio::test]
async fn a_run_is_a_stream_of_events() {
    let stage = Stage::new(hello()).await;
    let events = stage.run(&input("r1", &[user("u1", "hi")])).await;
    assert_eq!(text_of(&events), "Hello");
    assert_eq!(outcome(&events), "success");
    let end = end_of(&events);
    assert_eq!((&end["threadId"], &end["runId"]), (&json!("t"), &json!("r1")));
    assert!(end["usage"][0]["outputTokens"].as_u64().unwrap() > 0, "{end}");
    assert!(!events.iter().any(|event| event.to_json().contains("session")), "no session id leaks");
}

#[tokio::test]
async fn the_first_event_comes_before_the_model_answers() {
    let script = Script::new().rule(when(), model().text("Hello").hold("model"));
    let stage = Stage::new(script).await;
    let mut events = stage.begin(&input("r1", &[user("u1", "hi")])).await;
    let first = events.next().await.unwrap();
    assert!(matches!(first.body, Body::RunStarted { .. }));
    stage.api.gate("model").release();
    assert_eq!(text_of(&events.rest().await), "Hello");
}

#[tokio::test]
async fn malformed_input_is_refused_before_the_stream() {
    let stage = Stage::new(hello()).await;
    let refused = |body: Value, words: &'static str| {
        let stage = &stage;
        async move {
            let response = stage.post("ann", &body).await;
            assert_eq!(response.status(), 400);
            assert_eq!(response.headers()["content-type"], "application/json");
            let said: Value = response.json().await.unwrap();
            assert_eq!(said["error"]["message"], words, "{said}");
        }
    };
    refused(json!({"runId": "r", "messages": []}), "`threadId` must be present").await;
    refused(json!({"threadId": "t", "runId": "r"}), "`messages` must be present").await;
    refused(json!([]), "`the body` must be a JSON object").await;
    let newer = with(input("r", &[]), "protocolVersion", json!("2.0"));
    refused(newer, "this server supports AG-UI 1.x, not 2.x").await;
    let broken = stage.client().post(format!("{}/agui", stage.url)).bearer_auth("ann").body("{");
    assert_eq!(broken.send().await.unwrap().status(), 400);
    for version in ["1.7", "abc"] {
        let odd = with(input(version, &[]), "protocolVersion", json!(version));
        assert_eq!(outcome(&stage.run(&odd).await), "success");
    }
}

#[tokio::test]
async fn requests_without_a_token_are_refused() {
    let stage = Stage::new(hello()).await;
    for path in ["agui", "agui/stop"] {
        let url = format!("{}/{path}", stage.url);
        let response =
            stage.client().post(url).json(&json!({"threadId": "t"})).send().await.unwrap();
        assert_eq!(response.status(), 401);
    }
    let url = format!("{}/agui/capabilities", stage.url);
    assert_eq!(stage.client().get(&url).send().await.unwrap().status(), 401);
    let known: Value =
        stage.client().get(&url).bearer_auth("ann").send().await.unwrap().json().await.unwrap();
    assert_eq!(known["humanInTheLoop"]["interrupts"], true);
}

#[tokio::test]
async fn pages_of_known_origins_may_call_and_others_may_not() {
    let stage =
        Stage::with(hello(), |config| config.agui.origins = vec!["https://app.example".into()])
            .await;
    let preflight = |origin: &'static str| {
        let request =
            stage.client().request(reqwest::Method::OPTIONS, format!("{}/agui", stage.url));
        request
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type,authorization,x-mine")
            .send()
    };
    let known = preflight("https://app.example").await.unwrap();
    assert_eq!(known.status(), 204);
    assert_eq!(known.headers()["access-control-allow-origin"], "https://app.example");
    assert_eq!(
        known.headers()["access-control-allow-headers"],
        "content-type,authorization,x-mine"
    );
    let other = preflight("https://evil.example").await.unwrap();
    assert!(!other.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let stage = Stage::with(hello(), |config| config.limits.body = 1_000).await;
    let large = input("r1", &[user("u1", &"x".repeat(2_000))]);
    assert_eq!(stage.post("ann", &large).await.status(), 413);
}

#[tokio::test]
async fn a_silent_run_sends_keep_alive_comments() {
    let script = Script::new().rule(when(), model().text("Hello").hold("model"));
    let stage =
        Stage::with(script, |config| config.agui.keep_alive = Duration::from_millis(20)).await;
    let mut response = stage.post("ann", &input("r1", &[user("u1", "hi")])).await;
    let mut body = String::new();
    while !body.contains("\n\n: keep-alive\n\n") && !body.contains("\n\n:keep-alive\n\n") {
        let piece = tokio::time::timeout(Duration::from_secs(30), response.chunk()).await;
        body += std::str::from_utf8(&piece.expect("in time").unwrap().unwrap()).unwrap();
    }
    stage.api.gate("model").release();
    while let Some(piece) = response.chunk().await.unwrap() {
        body += &String::from_utf8_lossy(&piece);
    }
    assert!(body.contains("RUN_FINISHED"), "{body}");
}

#[tokio::test]
async fn too_many_runs_are_refused_and_the_others_continue() {
    let script = Script::new().rule(when(), model().text("Hello").hold("model"));
    let stage = Stage::with(script, |config| config.agui.max_runs = 1).await;
    let mut first = stage.begin(&input("r1", &[user("u1", "hi")])).await;
    first.next().await.unwrap();
    let other = with(input("r2", &[user("u1", "hi")]), "threadId", json!("other"));
    let refused = stage.post("ann", &other).await;
    assert_eq!(refused.status(), 503);
    stage.api.gate("model").release();
    assert_eq!(outcome(&first.rest().await), "success");
}
