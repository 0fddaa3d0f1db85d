//! Recorded requests of the official engines to in-process servers, compared with the answers of the official SDKs.

use std::path::Path;

use ostler_mcp::{Server, raw_tool};
use serde_json::{Value, json};

use crate::support::within;

/// The server of the recorded scenario: adds two numbers.
fn calc() -> Server {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    });
    let add = raw_tool("add", "Add two numbers", schema, |arguments: Value, _| async move {
        let (a, b) = (arguments["a"].as_i64(), arguments["b"].as_i64());
        a.zip(b).map(|(a, b)| a + b).ok_or("not two numbers")
    });
    let boom =
        raw_tool("boom", "Fails", json!({"properties": {}}), |_, _| async { Err::<(), _>("x") });
    Server::new("calc", "1.2.3").tool(add.read_only()).tool(boom)
}

fn lines(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Removes what differs between SDKs.
fn comparable(mut answer: Value) -> Value {
    if let Some(result) = answer["result"].as_object_mut() {
        // Absent means false.
        result.retain(|key, value| key != "isError" || *value != false);
    }
    let tools = &mut answer["result"]["tools"];
    for tool in tools.as_array_mut().into_iter().flatten() {
        let tool = tool.as_object_mut().unwrap();
        tool.retain(|key, _| key != "execution" && key != "annotations");
        let schema = tool["inputSchema"].as_object_mut().unwrap();
        schema.retain(|key, value| key != "$schema" && !(key == "required" && *value == json!([])));
    }
    if let Some(capability) = answer.pointer_mut("/result/capabilities/tools/listChanged") {
        *capability = true.into();
    }
    answer
}

/// Sends the engine's recorded messages, and compares with the SDK's answers.
async fn check(scenario: &str) {
    let connection = calc().connect();
    let (asked, answered) =
        (lines(&format!("{scenario}.stdout.jsonl")), lines(&format!("{scenario}.stdin.jsonl")));
    let mut compared = 0;
    for line in asked.iter().filter(|line| line["request"]["subtype"] == "mcp_message") {
        let message = &line["request"]["message"];
        let answer = within("an answer", connection.handle(message.clone())).await;
        let recorded =
            answered.iter().find(|reply| reply["response"]["request_id"] == line["request_id"]);
        let recorded = &recorded.unwrap()["response"]["response"]["mcp_response"];
        compared += 1;
        match answer {
            // The SDKs send an empty result, each in its own form.
            None => assert!(message.get("id").is_none(), "{message}"),
            Some(answer) => {
                assert_eq!(comparable(answer), comparable(recorded.clone()), "{message}")
            }
        }
    }
    assert!(compared > 0, "nothing in {scenario} was meant for a server");
}

#[tokio::test]
async fn the_old_protocol_level_makes_two_handshakes_and_calls() {
    check("ts050-mcp").await;
}

#[tokio::test]
async fn the_new_protocol_level_makes_a_handshake_and_calls() {
    check("py182-mcp").await;
}

#[tokio::test]
async fn the_new_protocol_level_with_a_manifest_calls_without_a_handshake() {
    check("ts325-mcp").await;
}

#[tokio::test]
async fn our_manifest_equals_that_of_the_official_sdk() {
    let lines = lines("ts325-mcp.stdin.jsonl");
    let manifests = lines.iter().find_map(|line| line["request"].get("sdkMcpServerManifests"));
    let recorded = &manifests.unwrap()["calc"];
    let ours = calc().manifest();
    assert_eq!(ours["initializeResult"], recorded["initializeResult"]);
    let comparable = |list: &Value| comparable(json!({"result": list}));
    assert_eq!(comparable(&ours["toolsListResult"]), comparable(&recorded["toolsListResult"]));
}
