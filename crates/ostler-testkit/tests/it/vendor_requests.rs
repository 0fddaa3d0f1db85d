//! Requests in the form of Claude Code 2.1.50 and 2.1.325, with our own texts. Most were observed on loopback. The
//! short request to a small model and the change of tools were not observed: they follow the documentation of the API.

use ostler_testkit::{Endpoint, reply};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{always, client};

/// The fields that both versions send.
fn request(model: &str, messages: Value) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let cached =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    json!({
        "model": model, "max_tokens": 32000, "stream": true, "messages": messages,
        "system": [text("billing"), cached("You are an agent."), cached("More.")],
        "tools": [{"name": "Bash", "description": "Runs", "input_schema": {"type": "object"}}],
        "metadata": {"user_id": "{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"s\"}"},
    })
}

/// The messages of a turn with one call and its result.
fn called(more: &[Value]) -> Value {
    let reminder = json!({"type": "text", "text": "<system-reminder>a note</system-reminder>"});
    let call =
        json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}});
    let result = json!({
        "type": "tool_result", "tool_use_id": "toolu_1", "content": "a", "is_error": false,
        "cache_control": {"type": "ephemeral"},
    });
    let mut messages = vec![
        json!({"role": "user", "content": [reminder, {"type": "text", "text": "list"}]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "Run."}, call]}),
        json!({"role": "user", "content": [result, {"type": "text", "text": "and?"}]}),
    ];
    messages.splice(1..1, more.iter().cloned());
    messages.into()
}

/// A request of the newer version.
fn newer(messages: Value) -> Value {
    let mut request = request("claude-opus-5-5", messages);
    request["thinking"] = json!({"type": "adaptive", "display": "updates"});
    request["output_config"] = json!({"effort": "medium"});
    request["context_management"] =
        json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]});
    request["tools"][0]["defer_loading"] = json!(true);
    request
}

async fn status(method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    let server = always(reply().text("Hi.")).await;
    let mut request = client()
        .request(method, format!("{}{path}", server.base_url()))
        .header("x-api-key", "test")
        .header("anthropic-version", "2023-06-01")
        .header(
            "anthropic-beta",
            "claude-code-20250219,mid-conversation-tool-changes-2026-07-01,unknown-1",
        )
        .header("x-stainless-lang", "js")
        .header("accept-encoding", "gzip, deflate, br, zstd");
    if let Some(body) = body {
        request = request.json(body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    server.finish();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn every_conversation_of_the_older_version_is_accepted() {
    let mut asks = request("claude-sonnet-4-5", called(&[]));
    asks["thinking"] = json!({"type": "enabled", "budget_tokens": 31999});
    let prompt = json!([{"role": "user", "content": [{"type": "text", "text": "list"}]}]);
    // Requests to the small model have no tools and no streaming, and may ask for only one token.
    let small = json!({
        "model": "claude-haiku-4-5", "max_tokens": 1, "temperature": 0, "system": [], "tools": [],
        "messages": [{"role": "user", "content": "quota"}], "metadata": {"user_id": "u"},
    });
    for body in [asks, request("claude-sonnet-4-5", prompt), small] {
        let (status, answer) = status(Method::POST, "/v1/messages?beta=true", Some(&body)).await;
        assert_eq!(status, 200, "{answer}");
    }
}

#[tokio::test]
async fn every_conversation_of_the_newer_version_is_accepted() {
    let effort = json!({"effort": "medium"});
    let text = json!({"role": "system", "content": "Where you are", "output_config": effort});
    let block =
        json!({"type": "text", "text": "Where you are", "cache_control": {"type": "ephemeral"}});
    let blocks = json!({"role": "system", "content": [block], "output_config": effort});
    let tools = json!({"role": "system", "content": [{"type": "a_change_of_tools", "tools": []}]});
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let picture =
        json!([{"role": "user", "content": [{"type": "text", "text": "look"}, image]}, blocks]);
    for messages in
        [called(&[text]), called(std::slice::from_ref(&blocks)), called(&[tools]), picture]
    {
        let body = newer(messages);
        let (status, answer) = status(Method::POST, "/v1/messages?beta=true", Some(&body)).await;
        assert_eq!(status, 200, "{answer}");
    }
}

#[tokio::test]
async fn tokens_of_a_text_and_of_a_single_tool_are_counted() {
    let tool = json!({"name": "Bash", "description": "Runs", "input_schema": {"type": "object"}});
    for tools in [json!([]), json!([tool])] {
        let body = json!({"model": "claude-opus-5-5", "messages": [{"role": "user", "content": "foo"}], "tools": tools});
        let path = "/v1/messages/count_tokens?beta=true";
        let (status, answer) = status(Method::POST, path, Some(&body)).await;
        assert!(status == 200 && answer["input_tokens"].is_u64(), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_checks_whether_the_server_runs_is_answered() {
    for (method, path) in [
        (Method::HEAD, "/"),
        (Method::HEAD, "/api/hello"),
        (Method::HEAD, "/v1/messages"),
        (Method::GET, "/api/hello"),
        (Method::GET, "/gateway/api/hello"),
    ] {
        let (status, _) = status(method.clone(), path, None).await;
        assert_eq!(status, 200, "{method} {path}");
    }
}

#[tokio::test]
async fn every_model_exists() {
    let (status, model) = status(Method::GET, "/v1/models/claude-opus-5-5", None).await;
    assert_eq!(
        (status, &model["id"], &model["type"]),
        (200, &json!("claude-opus-5-5"), &json!("model"))
    );
    let server = always(reply()).await;
    let url = |path: &str| format!("{}{path}", server.base_url());
    for path in ["/v1/models/a/b", "/v1/models/a/b/"] {
        assert_eq!(client().get(url(path)).send().await.unwrap().status(), 404, "{path}");
    }
    let seen = server.all_requests();
    assert!(seen.iter().all(|request| request.endpoint == Endpoint::Unknown));
}
