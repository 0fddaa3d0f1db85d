//! Questions of a tool to its client, with and without a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ostler_mcp::{AskError, ClientCapability, Connection, Context, Elicited, Server, raw_tool};
use serde_json::{Value, json};

use crate::support::{request, within};

/// A tool that asks twice, one after the other, and counts how often its function runs.
pub(crate) fn shop(runs: Arc<AtomicUsize>) -> Server {
    let schema = json!({"type": "object", "properties": {"item": {"type": "string"}}});
    let buy = raw_tool("buy", "Buys", schema, move |arguments, context: Context| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move {
            let form = json!({"type": "object", "properties": {"size": {"type": "string"}}});
            let message = format!("Which size of {}?", arguments["item"]);
            let size = context.elicit("size", message, form.clone()).await?;
            let colour = context.elicit("colour", "Which colour?", form).await?;
            Ok::<_, AskError>(format!("{size:?} {colour:?}"))
        }
    });
    let think = raw_tool("think", "Thinks", json!({}), |_, context: Context| async move {
        if !context.client_supports(ClientCapability::Sampling) {
            return Ok("not needed".to_owned());
        }
        context.sample("thought", json!({})).await.map(|answer| answer.to_string())
    });
    let must = raw_tool("must", "Must think", json!({}), |_, context: Context| async move {
        context.sample("thought", json!({})).await
    });
    Server::new("shop", "1").tools([buy, think, must])
}

fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The whole answer to a call without a session.
async fn stateless(connection: &Connection, capabilities: Value, mut params: Value) -> Value {
    params["_meta"] = meta(capabilities);
    let request = request(1, "tools/call", params);
    within("a call", connection.handle(request)).await.unwrap()
}

fn accepted(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

async fn initialized(server: &Server, capabilities: Value) -> Connection {
    let connection = server.connect();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
    connection.handle(request(0, "initialize", params)).await.unwrap();
    connection
}

fn buy(id: u64) -> Value {
    request(id, "tools/call", json!({"name": "buy", "arguments": {"item": "hat"}}))
}

#[tokio::test]
async fn a_tool_asks_the_client_of_its_session_and_receives_the_answers() {
    let server = shop(Arc::default());
    let connection = initialized(&server, json!({"elicitation": {}})).await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.handle(buy(1)).await }
    });
    for (message, answer) in [
        ("Which size of \"hat\"?", accepted(json!({"size": "L"}))),
        ("Which colour?", json!({"action": "decline"})),
    ] {
        let question = within("a question", connection.next_notification()).await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], message);
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
        assert_eq!(connection.handle(answer).await, None);
    }
    let answer = within("the call", call).await.unwrap().unwrap();
    let expected = Elicited::Accepted([("size".to_owned(), json!("L"))].into_iter().collect());
    let text = format!("{expected:?} {:?}", Elicited::Declined);
    assert_eq!(answer["result"]["content"][0]["text"], text);
}

#[tokio::test]
async fn without_the_capability_or_with_an_unusable_answer_nothing_counts_as_a_yes() {
    let server = shop(Arc::default());
    for capabilities in
        [json!({}), json!({"elicitation": {"url": {}}}), json!({"elicitation": true})]
    {
        let connection = initialized(&server, capabilities.clone()).await;
        let answer = within("the call", connection.handle(buy(1))).await.unwrap();
        assert_eq!(answer["result"]["isError"], true, "{capabilities}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("does not support elicitation"), "{text}");
    }
    for (outcome, reason) in [
        (json!({"result": {"action": "yes"}}), "malformed"),
        (json!({"result": 7}), "malformed"),
        (json!({"result": {"action": "accept", "content": []}}), "malformed"),
        (json!({"error": {"code": -1, "message": "no user"}}), "no user (code -1)"),
    ] {
        let connection = initialized(&server, json!({"elicitation": {}})).await;
        let call = tokio::spawn({
            let connection = connection.clone();
            async move { connection.handle(buy(1)).await }
        });
        let question = within("a question", connection.next_notification()).await;
        let mut answer = outcome;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = question["id"].clone();
        connection.handle(answer).await;
        let answer = within("the call", call).await.unwrap().unwrap();
        assert_eq!(answer["result"]["isError"], true);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(reason), "{text}");
    }
}

#[tokio::test]
async fn a_question_of_a_cancelled_call_is_withdrawn() {
    let server = shop(Arc::default());
    let connection = initialized(&server, json!({"elicitation": {}})).await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.handle(buy(7)).await }
    });
    let question = within("a question", connection.next_notification()).await;
    let params = json!({"requestId": 7});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    connection.handle(cancel).await;
    assert_eq!(within("the call", call).await.unwrap(), None);
    let withdrawn = within("the withdrawal", connection.next_notification()).await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
}

// Mutant: `take` ignores the answers of the state; the first question is then asked for ever.
#[tokio::test]
async fn without_a_session_each_question_ends_the_call_and_the_repeated_call_has_the_answers() {
    let runs = Arc::default();
    let connection = shop(Arc::clone(&runs)).connect();
    let form = || json!({"elicitation": {"form": {}}});
    let params = || json!({"name": "buy", "arguments": {"item": "hat"}});
    let first = stateless(&connection, form(), params()).await["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(first["inputRequests"]["size"]["params"]["message"], "Which size of \"hat\"?");
    assert!(first["inputRequests"].get("colour").is_none());

    let mut again = params();
    again["requestState"] = first["requestState"].clone();
    again["inputResponses"] = json!({"size": accepted(json!({"size": "L"}))});
    let second = stateless(&connection, form(), again.clone()).await["result"].clone();
    assert_eq!(second["inputRequests"]["colour"]["method"], "elicitation/create");

    let mut last = params();
    last["requestState"] = second["requestState"].clone();
    last["inputResponses"] = json!({"colour": {"action": "cancel"}});
    let done = stateless(&connection, form(), last).await["result"].clone();
    assert_eq!(done["resultType"], "complete");
    let expected = Elicited::Accepted([("size".to_owned(), json!("L"))].into_iter().collect());
    let text = format!("{expected:?} {:?}", Elicited::Cancelled);
    assert_eq!(done["content"][0]["text"], text);
    assert_eq!(runs.load(Ordering::SeqCst), 3);

    // The same answers for other arguments are refused, and so is a malformed answer.
    again["arguments"]["item"] = "coat".into();
    assert_eq!(stateless(&connection, form(), again).await["error"]["code"], -32602);
    let mut odd = params();
    odd["inputResponses"] = json!({"size": 7});
    assert_eq!(stateless(&connection, form(), odd).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_call_that_fails_for_want_of_a_capability_says_which() {
    let connection = shop(Arc::default()).connect();
    let refused = stateless(&connection, json!({}), json!({"name": "must"})).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    // One that can do without succeeds.
    let done = stateless(&connection, json!({}), json!({"name": "think"})).await;
    assert_eq!(done["result"]["content"][0]["text"], "not needed");
}
