//! The other endpoints, and the paths by which clients reach them.

use ostler_testkit::{Endpoint, Script, ScriptedApi, Usage, reply};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{always, ask, client};

#[tokio::test]
async fn any_prefix_and_any_query_are_accepted() {
    let server = always(reply().text("x")).await;
    let url = format!("{}/some/gateway/v1/messages?beta=true&x=1", server.base_url());
    let response = client().post(url).json(&ask("hi")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let request = &server.requests()[0];
    assert_eq!(
        (request.path.as_str(), request.query.as_str()),
        ("/some/gateway/v1/messages", "beta=true&x=1")
    );
}

#[tokio::test]
async fn tokens_are_counted_by_estimate_or_by_script() {
    let server = always(reply()).await;
    let mut request = ask("hi");
    request.as_object_mut().unwrap().remove("max_tokens");
    let count = async |server: &ScriptedApi| -> Value {
        let url = format!("{}/v1/messages/count_tokens?beta=true", server.base_url());
        client().post(url).json(&request).send().await.unwrap().json().await.unwrap()
    };
    let bytes = request["messages"].to_string().len() as u64;
    assert_eq!(count(&server).await, json!({"input_tokens": bytes.div_ceil(4)}));
    let scripted = ScriptedApi::start(Script::new().count_tokens(4321)).await;
    assert_eq!(count(&scripted).await, json!({"input_tokens": 4321}));
    assert!(scripted.requests().is_empty(), "counting needs no rule");
}

#[tokio::test]
async fn models_are_listed() {
    let server = always(reply()).await;
    let url = format!("{}/v1/models?limit=10", server.base_url());
    let list: Value = client().get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(list["data"][0]["type"], "model");
    assert_eq!(list["has_more"], false);
}

#[tokio::test]
async fn a_probe_of_the_root_is_answered() {
    let server = always(reply()).await;
    for method in [Method::HEAD, Method::GET] {
        let response = client().request(method, server.base_url()).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn an_unknown_path_is_answered_with_404_and_recorded() {
    let server = always(reply()).await;
    let response = client().get(format!("{}/v1/nothing", server.base_url())).send().await.unwrap();
    assert_eq!(response.status(), 404);
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["type"], "not_found_error");
    let wrong_method =
        client().get(format!("{}/v1/messages", server.base_url())).send().await.unwrap();
    assert_eq!(wrong_method.status(), 404);
    assert!(server.all_requests().iter().all(|request| request.endpoint == Endpoint::Unknown));
}

#[tokio::test]
async fn a_body_of_64_mebibytes_is_accepted() {
    // The script sets the token counts and the body is built as text, because unoptimised code is slow with so many
    // bytes.
    let server = always(reply().text("read it all").usage(Usage::tokens(1, 1))).await;
    let body = ask("LONG").to_string().replace("LONG", &"x".repeat(64 * 1024 * 1024));
    let url = format!("{}/v1/messages", server.base_url());
    let answer: Value = client().post(url).body(body).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["content"][0]["text"], "read it all");
    assert_eq!(server.requests()[0].last_user_text().len(), 64 * 1024 * 1024);
}

#[tokio::test]
async fn every_server_has_its_own_port_and_frees_it() {
    let first = always(reply()).await;
    let second = always(reply()).await;
    assert_ne!(first.base_url(), second.base_url());
    let port = first.address().port();
    assert!(ScriptedApi::bind(port, Script::new()).await.is_err(), "the port is taken");
    first.finish();
    ScriptedApi::bind(port, Script::new()).await.expect("the port is free again").finish();
}
