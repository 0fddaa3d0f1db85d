//! Requests of the engine and of MCP servers to the host: elicitations, dialogs, notifications and edits of input.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_sdk::mcp::{Server, tool_with_context};
use ostler_sdk::{Client, Decision, Dialog, Elicited, Options};
use serde_json::{Value, json};

use crate::fake::{ANSWERS, Fake, INTRODUCES, run, within};

/// Sends the question of an MCP server, and stores the answer.
pub(crate) const ELICITS: &str = r#"
read -r prompt
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"elicitation","mcp_server_name":"calc","message":"Your name?","mode":"form","requested_schema":{"type":"object","properties":{"name":{"type":"string"}}}}}'
read -r answer
printf '%s' "$answer" > answer
"#;

/// The answer that the engine receives.
async fn elicited(change: impl FnOnce(Options) -> Options) -> Value {
    let fake = Fake::new(&[INTRODUCES, ELICITS, ANSWERS, "cat > /dev/null"]);
    let (_, errors) = run(change(fake.options())).await;
    assert!(errors.is_empty(), "{errors:?}");
    let answer = std::fs::read_to_string(fake.folder.path().join("answer")).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["response"]["request_id"], "q");
    answer["response"]["response"].clone()
}

#[tokio::test]
async fn an_mcp_server_is_answered_by_the_callback() {
    let answer = elicited(|options| {
        options.on_elicitation(|request| async move {
            assert_eq!(request.mcp_server_name, "calc");
            assert_eq!(request.message, "Your name?");
            assert!(request.requested_schema.is_some());
            Elicited::accept().with_content(json!({"name": "Ada"}))
        })
    });
    assert_eq!(answer.await, json!({"action": "accept", "content": {"name": "Ada"}}));
}

#[tokio::test]
async fn the_answer_to_an_mcp_server_is_no_unless_the_callback_accepts() {
    let decline = json!({"action": "decline"});
    assert_eq!(elicited(|options| options).await, decline, "without a callback");
    let panicking = |options: Options| options.on_elicitation(|_| async { panic!("no idea") });
    assert_eq!(elicited(panicking).await, decline);
    let with_content = |options: Options| {
        options.on_elicitation(|_| async { Elicited::decline().with_content(json!({"a": 1})) })
    };
    assert_eq!(elicited(with_content).await, decline, "a no has no content");
    let silent = |options: Options| {
        let mut options = options.on_elicitation(|_| std::future::pending());
        options.permissions.timeout = Some(Duration::from_millis(50));
        options
    };
    assert_eq!(elicited(silent).await, json!({"action": "cancel"}));
}

/// Requests a dialog, and stores the answer.
pub(crate) const SHOWS: &str = r#"
read -r prompt
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"request_user_dialog","dialog_kind":"pick","payload":{"colors":["red"]},"tool_use_id":"t"}}'
read -r answer
printf '%s' "$answer" > answer
"#;

/// The answer that the engine receives.
async fn shown(change: impl FnOnce(Options) -> Options) -> Value {
    let fake = Fake::new(&[INTRODUCES, SHOWS, ANSWERS, "cat > /dev/null"]);
    let (_, errors) = run(change(fake.options())).await;
    assert!(errors.is_empty(), "{errors:?}");
    let answer = std::fs::read_to_string(fake.folder.path().join("answer")).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["response"]["request_id"], "q");
    answer["response"].clone()
}

#[tokio::test]
async fn a_dialog_is_shown_by_the_callback() {
    let picks = |options: Options| {
        options.on_dialog(["other", "pick"], |dialog| async move {
            assert_eq!(dialog.dialog_kind, "pick");
            assert_eq!(dialog.tool_use_id, Some("t".into()));
            Dialog::completed(dialog.payload["colors"][0].clone())
        })
    };
    let answer = shown(picks).await;
    assert_eq!(answer["response"], json!({"behavior": "completed", "result": "red"}));
}

#[tokio::test]
async fn a_dialog_that_is_not_completed_is_cancelled() {
    let cancelled = json!({"behavior": "cancelled"});
    let closes = |options: Options| options.on_dialog(["pick"], |_| async { Dialog::cancelled() });
    assert_eq!(shown(closes).await["response"], cancelled);
    let panics = |options: Options| options.on_dialog(["pick"], |_| async { panic!("no idea") });
    assert_eq!(shown(panics).await["response"], cancelled);
    let silent = |options: Options| {
        let mut options = options.on_dialog(["pick"], |_| std::future::pending());
        options.permissions.timeout = Some(Duration::from_millis(50));
        options
    };
    assert_eq!(shown(silent).await["response"], cancelled);
    let other = |options: Options| {
        options.on_dialog(["other"], |_| async { Dialog::completed("shown nevertheless") })
    };
    assert_eq!(shown(other).await["response"], cancelled, "the host cannot show this kind");
    // An engine whose host shows no dialogs receives an error, not a made-up answer.
    let refused = shown(|options| options).await;
    assert_eq!((&refused["subtype"], &refused["response"]), (&json!("error"), &Value::Null));
}

/// Answers a second `initialize` with a permission request that is still open, and stores the host's answer.
const ASKS_AGAIN: &str = r#"
question='{"type":"control_request","request_id":"old","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"pid":7},"pending_permission_requests":[%s]}}\n' "$id" "$question"
read -r first
printf '%s' "$first" > first
"#;

/// Sends the same permission request for the first time.
const ASKS_TWICE: &str = r#"
question='{"type":"control_request","request_id":"old","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
printf '%s\n' "$question"
"#;

#[tokio::test]
async fn an_open_permission_request_is_answered_after_a_second_initialize() {
    let fake = Fake::new(&[INTRODUCES, ASKS_AGAIN, "cat > /dev/null"]);
    let options = fake.options().on_permission(|call| async move {
        assert_eq!(call.tool_name, "Bash");
        Decision::allow()
    });
    let client = within(Client::connect(options)).await.unwrap();
    let reply = within(client.handle().reinitialize()).await.unwrap();
    assert_eq!(reply.pid, Some(7));
    let answer = fake.folder.path().join("first");
    within(async {
        while !answer.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    drop(client);
    let answer = std::fs::read_to_string(answer).unwrap();
    assert!(answer.contains(r#""request_id":"old""#) && answer.contains("allow"), "{answer}");
}

#[tokio::test]
async fn a_permission_request_that_is_being_answered_is_not_passed_to_the_callback_again() {
    let fake = Fake::new(&[INTRODUCES, ASKS_TWICE, ASKS_AGAIN, ANSWERS, "cat > /dev/null"]);
    let (asked, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (counts, waits) = (Arc::clone(&asked), Arc::clone(&go));
    let options = fake.options().on_permission(move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
        let waits = Arc::clone(&waits);
        async move {
            waits.notified().await;
            Decision::allow()
        }
    });
    let mut client = within(Client::connect(options)).await.unwrap();
    within(client.handle().reinitialize()).await.unwrap();
    go.notify_one();
    while within(client.next()).await.unwrap().unwrap().as_result().is_none() {}
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Calls a tool of a server in the host, and stores every line of the host.
const CALLS: &str = r#"
read -r prompt
printf '%s\n' '{"type":"control_request","request_id":"c","request":{"subtype":"mcp_message","server_name":"calc","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{},"_meta":{"progressToken":5}}}}}'
read -r one
printf '%s\n' "$one" >> received
id=$(printf '%s' "$one" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s"}}\n' "$id"
read -r two
printf '%s\n' "$two" >> received
"#;

#[tokio::test]
async fn notifications_of_a_server_in_the_host_reach_the_engine() {
    let go = Arc::new(tokio::sync::Notify::new());
    let waits = Arc::new(Mutex::new(Some(Arc::clone(&go))));
    let count = tool_with_context("count", "Counts", move |(): (), context| {
        let go = waits.lock().unwrap().take().unwrap();
        async move {
            context.progress(1.0, Some(2.0), "half");
            go.notified().await;
            Ok::<_, String>("counted")
        }
    });
    let fake = Fake::new(&[INTRODUCES, CALLS, ANSWERS, "cat > /dev/null"]);
    let options = fake.options().server(Server::new("calc", "1.0.0").tool(count));
    let received = fake.folder.path().join("received");
    let mut client = within(Client::connect(options)).await.unwrap();
    client.send("count").await.unwrap();
    // The engine receives the progress before the tool has ended.
    within(async {
        while !received.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    go.notify_one();
    while within(client.next()).await.unwrap().unwrap().as_result().is_none() {}
    let received = std::fs::read_to_string(received).unwrap();
    let lines: Vec<Value> =
        received.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let request = &lines[0]["request"];
    let route = (&request["subtype"], &request["server_name"]);
    assert_eq!(route, (&json!("mcp_message"), &json!("calc")));
    assert_eq!(request["message"]["params"]["progressToken"], 5);
    assert_eq!(
        lines[1]["response"]["response"]["mcp_response"]["result"]["content"][0]["text"],
        "counted"
    );
}

/// Asks whether a command may run, and stores the answer.
const ASKS: &str = r#"
read -r prompt
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls","timeout":5},"tool_use_id":"t"}}'
read -r answer
printf '%s' "$answer" > answer
"#;

/// The answer that the engine receives.
async fn decided(change: impl FnOnce(Options) -> Options) -> Value {
    let fake = Fake::new(&[INTRODUCES, ASKS, ANSWERS, "cat > /dev/null"]);
    let (_, errors) = run(change(fake.options())).await;
    assert!(errors.is_empty(), "{errors:?}");
    let answer = std::fs::read_to_string(fake.folder.path().join("answer")).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["response"]["response"].clone()
}

#[tokio::test]
async fn a_callback_answers_at_once_and_edits_the_input() {
    let edited = decided(|options| {
        options.on_permission(|call| match call.tool_name.as_str() {
            "Bash" => Decision::allow().edit(|input| input["command"] = "ls -a".into()),
            _ => Decision::deny("only commands"),
        })
    });
    let edited = edited.await;
    assert_eq!(edited["behavior"], "allow");
    assert_eq!(edited["updatedInput"], json!({"command": "ls -a", "timeout": 5}));
    let replaced = decided(|options| {
        options.on_permission(|_| {
            Decision::allow().with_input(json!({"a": 1})).edit(|input| input["b"] = 2.into())
        })
    });
    assert_eq!(replaced.await["updatedInput"], json!({"a": 1, "b": 2}));
    let denied = decided(|options| {
        options.on_permission(|_| Decision::deny("no").edit(|input| input["a"] = 1.into()))
    });
    assert_eq!(denied.await["behavior"], "deny", "a no has no input");
    let panics =
        decided(|options| options.on_permission(|_| Decision::allow().edit(|_| panic!("no idea"))));
    assert_eq!(panics.await["behavior"], "deny");
}
