//! Requests that the real API would refuse are refused and recorded.

use ostler_testkit::{FailureKind, reply};
use serde_json::{Value, json};

use crate::support::{always, ask, client, send};

/// Sends a raw body, expects the API's 400, and returns its message.
async fn refusal(body: impl Into<reqwest::Body>) -> String {
    let server = always(reply()).await;
    let response = client()
        .post(format!("{}/v1/messages", server.base_url()))
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
    let answer: Value = response.json().await.unwrap();
    assert_eq!(
        (&answer["type"], &answer["error"]["type"]),
        (&json!("error"), &json!("invalid_request_error"))
    );
    let failures = server.take_failures();
    assert_eq!((failures.len(), failures[0].kind), (1, FailureKind::Invalid));
    assert_eq!(server.requests()[0].rule, None, "no rule answers a request that is not valid");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    assert!(refusal("{\"model\": ").await.starts_with("the request body is not valid JSON: EOF"));
    assert!(refusal("").await.starts_with("the request body is not valid JSON"));
}

#[tokio::test]
async fn the_error_names_missing_fields_and_unknown_roles() {
    assert_eq!(refusal(json!({"messages": []}).to_string()).await, "model: Field required");
    assert_eq!(refusal(json!({"model": "m"}).to_string()).await, "messages: Field required");
    let empty = json!({"model": "m", "max_tokens": 1, "messages": []});
    assert_eq!(refusal(empty.to_string()).await, "messages: at least one message is required");
    let strange =
        json!({"model": "m", "max_tokens": 1, "messages": [{"role": "tool", "content": "x"}]});
    assert_eq!(
        refusal(strange.to_string()).await,
        "messages.0.role: must be \"user\" or \"assistant\", not \"tool\""
    );
}

#[tokio::test]
async fn a_lost_tool_result_is_refused_with_the_id_of_the_call() {
    let mut request = ask("list");
    let call = json!({"type": "tool_use", "id": "toolu_lost", "name": "Bash", "input": {}});
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": [call]}));
    messages.push(json!({"role": "user", "content": "and?"}));
    let error = refusal(request.to_string()).await;
    assert!(error.contains("without tool_result blocks immediately after: toolu_lost"), "{error}");
}

#[tokio::test]
async fn a_result_without_a_call_is_refused() {
    let mut request = ask("list");
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_unknown", "content": "x"});
    request["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": [result]}));
    let error = refusal(request.to_string()).await;
    assert!(
        error.contains("unexpected tool_use_id found in tool_result blocks: toolu_unknown"),
        "{error}"
    );
}

#[tokio::test]
async fn count_tokens_also_refuses_invalid_conversations() {
    let server = always(reply()).await;
    let url = format!("{}/v1/messages/count_tokens", server.base_url());
    let response =
        client().post(url).json(&json!({"model": "m", "messages": []})).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(server.take_failures().len(), 1);
}

#[tokio::test]
#[should_panic(expected = "request 0 is not valid: max_tokens: Field required")]
async fn a_request_that_is_not_valid_fails_the_test() {
    let server = always(reply()).await;
    let mut request = ask("hi");
    request.as_object_mut().unwrap().remove("max_tokens");
    send(&server, &request).await;
    server.finish();
}
