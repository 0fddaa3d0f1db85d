//! An in-process server, message by message.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::join_all;
use ostler_mcp::{Server, raw_tool, tool, tool_with_context};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify, oneshot};

use crate::support::{calc, call, error, output, request, result, within};

#[tokio::test]
async fn the_handshake_describes_the_server_and_accepts_known_versions() {
    let connection = calc().connect();
    for (wanted, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": wanted, "capabilities": {}, "clientInfo": {}});
        let answer = result(&connection, "initialize", params).await;
        let changes = json!({"listChanged": true});
        let watched = json!({"listChanged": true, "subscribe": true});
        assert_eq!(
            answer,
            json!({
                "protocolVersion": given,
                "capabilities": {"tools": changes, "resources": watched, "prompts": changes},
                "serverInfo": {"name": "calc", "version": "1.2.3", "title": "A calculator"},
                "instructions": "Adds, and that is it.",
            })
        );
    }
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(connection.handle(initialized).await, None);
    assert_eq!(result(&connection, "ping", Value::Null).await, json!({}));
}

#[tokio::test]
async fn the_manifest_equals_the_handshakes_answers() {
    let server = calc();
    let connection = server.connect();
    let params = json!({"protocolVersion": "2025-11-25"});
    let expected = json!({
        "initializeResult": result(&connection, "initialize", params).await,
        "toolsListResult": result(&connection, "tools/list", Value::Null).await,
    });
    assert_eq!(server.manifest(), expected);
}

#[tokio::test]
async fn tools_are_listed_with_schema_and_hints() {
    let tools = result(&calc().connect(), "tools/list", Value::Null).await;
    assert_eq!(
        tools["tools"][0],
        json!({
            "name": "add",
            "description": "Add two numbers",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "format": "int64", "description": "The first number."},
                    "b": {"type": "integer", "format": "int64"},
                },
                "required": ["a", "b"],
            },
            "annotations": {"readOnlyHint": true},
        })
    );
    let hinted = tool("x", "y", |(): ()| async { Ok::<_, Infallible>(()) })
        .title("X")
        .destructive(false)
        .idempotent()
        .open_world(true)
        .meta("example/key", 7);
    let tools =
        result(&Server::new("s", "1").tool(hinted).connect(), "tools/list", json!({})).await;
    let hints = json!({"destructiveHint": false, "idempotentHint": true, "openWorldHint": true});
    assert_eq!(tools["tools"][0]["annotations"], hints);
    assert_eq!(tools["tools"][0]["title"], "X");
    assert_eq!(tools["tools"][0]["_meta"], json!({"example/key": 7}));
}

#[tokio::test]
async fn a_tool_answers_and_its_errors_reach_the_model() {
    let connection = calc().connect();
    let says = |tool, arguments| output(&connection, tool, arguments);
    assert_eq!(says("add", json!({"a": 2, "b": 3})).await, ("5".to_owned(), false));
    let (text, is_error) = says("add", json!({"a": 2, "b": "three"})).await;
    assert!(is_error);
    assert_eq!(
        text,
        "invalid arguments for `add`: `b`: invalid type: string \"three\", expected i64"
    );
    assert_eq!(
        says("add", json!({"a": 2})).await,
        ("invalid arguments for `add`: missing field `b`".to_owned(), true)
    );
    let large = json!({"a": i64::MAX, "b": 1});
    assert_eq!(says("add", large).await, ("the sum is too large".to_owned(), true));
    assert_eq!(says("boom", json!({})).await, ("no luck today".to_owned(), true));
    let (text, is_error) = says("panic", Value::Null).await;
    assert!(is_error && text.contains("the tool has a bug"), "{text}");
    // The session continues.
    assert_eq!(says("add", json!({"a": 2, "b": 3})).await, ("5".to_owned(), false));
}

#[tokio::test]
async fn a_closure_may_panic_before_it_makes_a_future() {
    let broken = raw_tool("broken", "", json!({}), |arguments: Value, _| {
        assert!(arguments["never"].is_string(), "not even begun");
        async { Ok::<_, Infallible>(()) }
    });
    let (text, is_error) =
        output(&Server::new("s", "1").tool(broken).connect(), "broken", json!({})).await;
    assert!(is_error && text.contains("not even begun"), "{text}");
}

#[tokio::test]
async fn a_result_may_be_made_of_several_blocks() {
    let drawn = result(&calc().connect(), "tools/call", json!({"name": "draw"})).await;
    assert_eq!(
        drawn,
        json!({"content": [
            {"type": "text", "text": "a dot"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "note://a", "text": "a note"}},
        ]})
    );
}

#[tokio::test]
async fn a_raw_tool_takes_its_schema_and_arguments_as_json() {
    let schema = json!({"properties": {"key": {"type": "string"}}});
    let echo = raw_tool("echo", "", schema, |arguments: Value, _| async move {
        Ok::<_, Infallible>(arguments)
    });
    let connection = Server::new("s", "1").tool(echo).connect();
    let tools = result(&connection, "tools/list", json!({})).await;
    assert_eq!(tools["tools"][0]["inputSchema"]["type"], "object");
    let answer =
        result(&connection, "tools/call", json!({"name": "echo", "arguments": {"key": "v"}})).await;
    assert_eq!(answer["structuredContent"], json!({"key": "v"}));
    assert!(output(&connection, "echo", json!("text")).await.1);
}

#[tokio::test]
async fn a_tool_receives_its_calls_metadata_and_reports_progress() {
    let connection = calc().connect();
    let meta = json!({"claudecode/toolUseId": "toolu_1", "progressToken": 2});
    let params = json!({"name": "progress", "arguments": {}, "_meta": meta});
    let answer = result(&connection, "tools/call", params).await;
    assert_eq!(answer["structuredContent"], json!({"id": "toolu_1"}));
    let report =
        |params| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    let first = within("the first report", connection.next_notification()).await;
    let half = json!({"progressToken": 2, "progress": 1.0, "total": 2.0, "message": "half"});
    assert_eq!(first, report(half));
    let second = within("the second report", connection.next_notification()).await;
    assert_eq!(second, report(json!({"progressToken": 2, "progress": 2.0, "total": 2.0})));
}

#[tokio::test]
async fn messages_are_answered_concurrently() {
    let together = Arc::new(Barrier::new(50));
    let meet = tool("meet", "Waits for all calls", move |(): ()| {
        let together = Arc::clone(&together);
        async move {
            together.wait().await;
            Ok::<_, Infallible>(())
        }
    });
    let connection = Server::new("s", "1").tool(meet).connect();
    let calls = (0..50).map(|id| connection.handle(call(id, "meet", json!({}))));
    let answers = within("fifty calls that wait for each other", join_all(calls)).await;
    for (id, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap()["id"], id);
    }
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_has_no_answer() {
    let (started, sender) = (Arc::new(Notify::new()), Arc::new(std::sync::Mutex::new(None)));
    let (tell, dropped) = oneshot::channel::<()>();
    *sender.lock().unwrap() = Some(tell);
    let begun = Arc::clone(&started);
    let wait = tool_with_context("wait", "", move |(): (), context| {
        let (begun, held) = (Arc::clone(&begun), sender.lock().unwrap().take());
        async move {
            begun.notify_one();
            context.cancellation().cancelled().await;
            std::future::pending::<()>().await;
            drop(held);
            Ok::<_, Infallible>(())
        }
    });
    let connection = Server::new("s", "1").tool(wait).connect();
    let running = tokio::spawn({
        let connection = connection.clone();
        async move { connection.handle(call("seven", "wait", json!({}))).await }
    });
    within("the call", started.notified()).await;
    let cancelled = |id: &str| {
        let params = json!({"requestId": id, "reason": "too slow"});
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    };
    assert_eq!(connection.handle(cancelled("eight")).await, None);
    assert!(!running.is_finished());
    assert_eq!(connection.handle(cancelled("seven")).await, None);
    assert_eq!(within("the cancelled call", running).await.unwrap(), None);
    assert!(
        within("the tool's drop", dropped).await.is_err(),
        "its future is dropped, not finished"
    );
}

#[tokio::test]
async fn unknown_methods_tools_and_parameters_are_refused() {
    let connection = calc().connect();
    let code = |answer: Option<Value>| answer.unwrap()["error"]["code"].clone();
    assert_eq!(error(&connection, "tools/dance", json!({})).await.0, -32601);
    assert_eq!(code(connection.handle(json!("hello")).await), -32600);
    assert_eq!(code(connection.handle(json!({"method": "ping", "id": 1})).await), -32600);
    assert_eq!(code(connection.handle(json!([])).await), -32600);
    assert_eq!(code(connection.handle(request(1, "ping", json!([1]))).await), -32602);
    assert_eq!(error(&connection, "tools/call", json!({})).await.0, -32602);
    let (code, text) = error(&connection, "tools/call", json!({"name": "sub"})).await;
    assert_eq!(code, -32602);
    assert!(text.contains("no tool `sub`; there are: add, boom"), "{text}");
    let unknown = json!({"jsonrpc": "2.0", "method": "notifications/dance"});
    assert_eq!(connection.handle(unknown).await, None);
}

#[tokio::test]
async fn a_batch_is_answered_with_a_batch() {
    let connection = calc().connect();
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ping = |id: i64| request(id, "ping", json!({}));
    let answers = connection.handle(json!([ping(1), notification, ping(2)])).await.unwrap();
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(connection.handle(json!([notification])).await, None);
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let connection = calc().connect();
    let listed = result(&connection, "resources/list", json!({})).await;
    let today = json!({"uri": "note://today", "name": "today", "mimeType": "text/plain"});
    assert_eq!(listed, json!({"resources": [today]}));
    let templates = result(&connection, "resources/templates/list", json!({})).await;
    let family = json!({"uriTemplate": "note://{day}/{+rest}", "name": "notes"});
    assert_eq!(templates, json!({"resourceTemplates": [family]}));
    let read = result(&connection, "resources/read", json!({"uri": "note://today"})).await;
    let contents = json!({"uri": "note://today", "mimeType": "text/plain", "text": "buy milk"});
    assert_eq!(read, json!({"contents": [contents]}));
    let read = result(&connection, "resources/read", json!({"uri": "note://monday/a/b"})).await;
    assert_eq!(read["contents"][0]["text"], "monday: a/b");
    let missing = error(&connection, "resources/read", json!({"uri": "note://x"})).await;
    assert_eq!(missing, (-32002, "there is no resource `note://x`".to_owned()));
    let (code, text) = error(&connection, "resources/read", json!({"uri": "note://never/x"})).await;
    assert_eq!(code, -32603);
    assert!(text.contains("there is no such day"), "{text}");
}

#[tokio::test]
async fn prompts_are_listed_and_made() {
    let connection = calc().connect();
    let listed = result(&connection, "prompts/list", json!({})).await;
    let arguments = json!([
        {"name": "name", "description": "Whom to greet", "required": true},
        {"name": "tone", "description": "How", "required": false},
    ]);
    let greet = json!({"name": "greet", "description": "Greets a person", "arguments": arguments});
    assert_eq!(listed, json!({"prompts": [greet]}));
    let params = json!({"name": "greet", "arguments": {"name": "Ada"}});
    let made = result(&connection, "prompts/get", params).await;
    let content = json!({"type": "text", "text": "Say hello to Ada."});
    assert_eq!(made["messages"], json!([{"role": "user", "content": content}]));
    let (code, text) = error(&connection, "prompts/get", json!({"name": "greet"})).await;
    assert_eq!(code, -32602);
    assert!(text.contains("needs the argument `name`"), "{text}");
    assert_eq!(error(&connection, "prompts/get", json!({"name": "insult"})).await.0, -32602);
}

#[tokio::test]
async fn tools_can_change_while_clients_are_connected() {
    let server = Server::new("s", "1");
    let (one, other) = (server.connect(), server.clone().connect());
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    server.add_tool(tool("late", "", |(): ()| async { Ok::<_, Infallible>("here") }));
    assert_eq!(within("news", one.next_notification()).await, changed);
    assert_eq!(within("news", other.next_notification()).await, changed);
    assert_eq!(output(&one, "late", json!({})).await.0, "here");
    server.add_tool(tool("late", "", |(): ()| async { Ok::<_, Infallible>("replaced") }));
    assert_eq!(output(&one, "late", json!({})).await.0, "replaced");
    assert!(server.remove_tool("late") && !server.remove_tool("late"));
    assert_eq!(error(&one, "tools/call", json!({"name": "late"})).await.0, -32602);
}
