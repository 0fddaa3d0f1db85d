//! Recorded requests: what a test can read about the requests that it caused.

use ostler_testkit::{Endpoint, Outcome, ToolResult, reply};
use serde_json::json;

use crate::support::{after_tool, always, ask, client, message, send, streamed};

#[tokio::test]
async fn a_request_is_recorded_with_headers_body_rule_and_outcome() {
    let server = always(reply().tool_use("Bash", json!({"command": "ls"}))).await;
    let mut request = ask("list");
    request["system"] =
        json!([{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Be brief."}]);
    request["tools"] = json!([{"name": "Bash", "input_schema": {"type": "object"}}, {"name": "Read", "input_schema": {"type": "object"}}]);
    let call = message(&server, &request).await;
    message(&server, &after_tool(request.clone(), &call, "a.txt")).await;

    let requests = server.requests();
    assert_eq!((requests[0].sequence, requests[1].sequence), (0, 1));
    assert_eq!(requests[0].body, request);
    let second = &requests[1];
    assert_eq!(
        (second.method.as_str(), second.path.as_str(), second.query.as_str()),
        ("POST", "/v1/messages", "")
    );
    assert_eq!(second.headers["content-type"], "application/json");
    assert_eq!((second.model(), second.turn(), second.messages().len()), ("claude-test", 1, 3));
    assert_eq!(second.last_user_text(), "list");
    assert_eq!(second.system_text(), "Be kind.\nBe brief.");
    assert_eq!(second.tool_names(), ["Bash", "Read"]);
    let id = call["content"][0]["id"].as_str().unwrap().to_owned();
    let result = ToolResult {
        tool_use_id: id,
        tool_name: Some("Bash".into()),
        text: "a.txt".into(),
        is_error: false,
    };
    assert_eq!(second.tool_results(), [result]);
    assert!(
        second
            .transcript()
            .starts_with("0.0 user       text: list\n1.0 assistant  tool_use Bash toolu_")
    );
}

#[tokio::test]
async fn keys_are_redacted_but_their_presence_is_recorded() {
    let server = always(reply()).await;
    let url = format!("{}/v1/messages", server.base_url());
    let post = || client().post(&url).json(&ask("hi"));
    post().header("x-api-key", "secret-1").send().await.unwrap();
    post().header("authorization", "Bearer secret-2").send().await.unwrap();
    post().send().await.unwrap();
    let requests = server.all_requests();
    let keys: Vec<bool> = requests.iter().map(|request| request.has_api_key).collect();
    assert_eq!(keys, [true, true, false]);
    assert_eq!(requests[0].headers["x-api-key"], "[redacted]");
    assert_eq!(requests[1].headers["authorization"], "[redacted]");
    assert!(!serde_json::to_string(&requests).unwrap().contains("secret"));
}

#[tokio::test]
async fn a_test_can_wait_for_requests_of_other_tasks() {
    let server = std::sync::Arc::new(always(reply().text("x")).await);
    let other = tokio::spawn({
        let server = server.clone();
        async move {
            for prompt in ["one", "two", "three"] {
                message(&server, &ask(prompt)).await;
            }
        }
    });
    let requests = server.wait_for_requests(3).await;
    let prompts: Vec<String> = requests.iter().map(|request| request.last_user_text()).collect();
    assert_eq!(prompts, ["one", "two", "three"]);
    other.await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_during_a_stream_is_distinguished_from_one_that_stays() {
    let server = always(reply().text_pieces(["a", "b"]).gate(3, "middle")).await;
    let mut leaving = send(&server, &streamed(ask("leave"))).await;
    leaving.chunk().await.unwrap();
    let staying = send(&server, &streamed(ask("stay"))).await;
    server.gate("middle").reached_by(2).await;
    drop(leaving);
    server.wait_for("the first to leave", |requests| requests[0].client_left()).await;
    server.gate("middle").release();
    staying.text().await.unwrap();
    let requests =
        server.wait_for("the second to end", |requests| requests[1].outcome != Outcome::Open).await;
    assert_eq!(requests[1].outcome, Outcome::Complete);
}

#[tokio::test]
async fn other_endpoints_are_recorded_apart_from_messages() {
    let server = always(reply()).await;
    client().get(server.base_url()).send().await.unwrap();
    message(&server, &ask("hi")).await;
    assert_eq!(server.requests().len(), 1);
    let all = server.all_requests();
    assert_eq!((all[0].endpoint, all[1].endpoint), (Endpoint::Probe, Endpoint::Messages));
    assert_eq!(server.requests()[0].sequence, 1, "the sequence counts every request");
}
