//! Tools that run only as tasks (MCP 2025-11-25).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_mcp::{CallOptions, Channel, Client, ClientOptions, Endpoint, Error};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::within;

type Seen = Arc<Mutex<Vec<Value>>>;

/// A server whose tool `slow` runs only as a task, which says `states` one after the other.
fn server(states: &[&'static str], seen: &Seen) -> Endpoint {
    let (states, seen) = (states.to_vec(), Arc::clone(seen));
    Endpoint::custom(move || {
        let (ours, mut theirs) = Channel::pair(8);
        let (mut states, seen) = (states.clone().into_iter(), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Some(message) = theirs.incoming.recv().await {
                seen.lock().unwrap().push(message.clone());
                let task = |state: &str| json!({"taskId": "t-1", "status": state, "statusMessage": state, "pollInterval": 1});
                let result = match message["method"].as_str().unwrap_or_default() {
                    "initialize" => json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
                        "serverInfo": {"name": "s", "version": "1"},
                    }),
                    "tools/list" => json!({"tools": [
                        {"name": "slow", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
                        {"name": "fast", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
                    ]}),
                    "tools/call" if message["params"]["name"] == "slow" => {
                        json!({"task": task("working")})
                    }
                    "tasks/get" => task(states.next().unwrap_or("working")),
                    _ => json!({"content": [{"type": "text", "text": "done"}]}),
                };
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                if message.get("id").is_some() && theirs.outgoing.send(answer).await.is_err() {
                    return;
                }
            }
        });
        ours
    })
}

async fn client(states: &[&'static str]) -> (Client, Seen) {
    let seen = Seen::default();
    let client = Client::connect("s", server(states, &seen), ClientOptions::default());
    let client = within("connecting", client).await.unwrap();
    client.list_tools().await.unwrap();
    (client, seen)
}

/// The methods since the list of tools.
fn methods(seen: &Seen) -> Vec<String> {
    let seen = seen.lock().unwrap();
    let methods = seen.iter().map(|it| it["method"].as_str().unwrap().to_owned());
    methods.skip_while(|method| method != "tools/list").skip(1).collect()
}

// Mutants: `must_be_task` that is always false, or also true for `optional`; the loop ends after one look.
#[tokio::test]
async fn a_tool_that_requires_it_is_called_as_a_task_whose_result_is_awaited() {
    let (client, seen) = client(&["working", "completed"]).await;
    let (tell, told) = std::sync::mpsc::channel();
    let options = CallOptions::default().on_progress(move |report| {
        tell.send(report.message).ok();
    });
    let call = client.call_tool("slow", json!({"a": 1}), options);
    assert_eq!(within("the call", call).await.unwrap().joined_text(), "done");
    assert_eq!(methods(&seen), ["tools/call", "tasks/get", "tasks/get", "tasks/result"]);
    let call =
        seen.lock().unwrap().iter().find(|it| it["method"] == "tools/call").cloned().unwrap();
    assert!(call["params"]["task"]["ttl"].as_u64().unwrap() > 0, "{call}");
    assert_eq!(call["params"]["arguments"], json!({"a": 1}));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Some("working".to_owned())]);
    let call = client.call_tool("fast", json!({}), CallOptions::default());
    assert_eq!(within("the call", call).await.unwrap().joined_text(), "done");
    assert!(seen.lock().unwrap().last().unwrap()["params"].get("task").is_none());
}

#[tokio::test]
async fn a_task_that_waits_for_the_user_or_has_failed_is_asked_for_its_result() {
    for state in ["input_required", "failed", "cancelled"] {
        let (client, seen) = client(&[state]).await;
        let call = client.call_tool("slow", json!({}), CallOptions::default());
        within(state, call).await.unwrap();
        assert_eq!(methods(&seen), ["tools/call", "tasks/get", "tasks/result"], "{state}");
    }
}

// Mutant: `Running` without `drop`.
#[tokio::test]
async fn a_task_that_is_given_up_is_cancelled_at_the_server() {
    let cancelled_there = async |seen: &Seen| {
        while !methods(seen).iter().any(|method| method == "tasks/cancel") {
            tokio::task::yield_now().await;
        }
    };
    let (client_, seen) = client(&[]).await;
    let options = CallOptions::default().timeout(Duration::from_millis(200));
    let call = client_.call_tool("slow", json!({}), options);
    let error = within("the call", call).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    within("cancelling", cancelled_there(&seen)).await;

    let (client_, seen) = client(&[]).await;
    let token = CancellationToken::new();
    let options = CallOptions::default().cancellation(token.clone());
    let call = client_.call_tool("slow", json!({}), options);
    let cancelling = async {
        while !methods(&seen).iter().any(|method| method == "tasks/get") {
            tokio::task::yield_now().await;
        }
        token.cancel();
    };
    let (result, ()) = within("the call", async { tokio::join!(call, cancelling) }).await;
    assert!(matches!(result, Err(Error::Cancelled { .. })));
    within("cancelling", cancelled_there(&seen)).await;
    assert_eq!(seen.lock().unwrap().last().unwrap()["params"]["taskId"], "t-1");
}
