//! The control endpoints that tests in other languages use.

use ostler_testkit::{Script, ScriptedApi, reply};
use serde_json::{Value, json};

use crate::support::{always, ask, client, message, send, streamed};

fn url(server: &ScriptedApi, endpoint: &str) -> String {
    format!("{}/__scripted/{endpoint}", server.base_url())
}

async fn get(server: &ScriptedApi, endpoint: &str) -> Value {
    client().get(url(server, endpoint)).send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn requests_are_listed_as_json_and_control_calls_are_not_recorded() {
    let server = always(reply().text("x")).await;
    message(&server, &ask("hi")).await;
    get(&server, "requests").await;
    let requests = get(&server, "requests").await;
    assert_eq!(requests.as_array().unwrap().len(), 1);
    assert_eq!(requests[0]["body"], ask("hi"));
    let facts = ["endpoint", "rule", "status", "outcome", "has_api_key"]
        .map(|name| requests[0][name].clone());
    assert_eq!(facts, [json!("messages"), json!(0), json!(200), json!("complete"), json!(false)]);
}

#[tokio::test]
async fn failures_are_listed_and_can_be_cleared() {
    let server = ScriptedApi::start(Script::new()).await;
    send(&server, &ask("hi")).await;
    send(&server, &json!({})).await;
    assert_eq!(get(&server, "unmatched").await.as_array().unwrap().len(), 1);
    assert_eq!(get(&server, "failures").await[1]["kind"], "invalid");
    let taken: Value =
        client().delete(url(&server, "failures")).send().await.unwrap().json().await.unwrap();
    assert!(taken[0]["report"].as_str().unwrap().contains("0.0 user       text: hi"));
    assert_eq!(get(&server, "failures").await, json!([]));
}

#[tokio::test]
async fn a_script_can_be_replaced_and_added_to() {
    let server = always(reply().text("old")).await;
    let rule = |prompt: &str, text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"rules": [{"when": {"prompt": prompt}, "reply": {"content": content}}]})
    };
    let change = async |query: &str, script: Value| {
        let changed =
            client().post(url(&server, query)).body(script.to_string()).send().await.unwrap();
        assert_eq!(changed.status(), 200);
    };
    change("script", rule("a", "new")).await;
    change("script?mode=append", rule("b", "more")).await;
    assert_eq!(message(&server, &ask("a")).await["content"][0]["text"], "new");
    assert_eq!(message(&server, &ask("b")).await["content"][0]["text"], "more");
    assert_eq!(send(&server, &ask("c")).await.status(), 400, "the old rule is gone");
    server.take_failures();
}

#[tokio::test]
async fn a_bad_script_is_refused_and_the_old_one_stays() {
    let server = always(reply().text("old")).await;
    let bad = client()
        .post(url(&server, "script"))
        .body(r#"{"rules": [{"reply": {"txt": 1}}]}"#)
        .send()
        .await
        .unwrap();
    assert_eq!(bad.status(), 400);
    assert!(bad.text().await.unwrap().starts_with("rules[0].reply.txt: unknown field `txt`"));
    assert_eq!(message(&server, &ask("a")).await["content"][0]["text"], "old");
}

#[tokio::test]
async fn gates_can_be_awaited_and_released() {
    let server = always(reply().text("x").gate(1, "half")).await;
    let stream = send(&server, &streamed(ask("hi"))).await;
    let gate = |endpoint: &str| {
        client().post(url(&server, endpoint)).json(&json!({"gate": "half"})).send()
    };
    let reached: Value = gate("reached").await.unwrap().json().await.unwrap();
    assert_eq!(reached, json!({"arrivals": 1}));
    assert_eq!(gate("release").await.unwrap().status(), 200);
    assert!(stream.text().await.unwrap().contains("message_stop"));
}
