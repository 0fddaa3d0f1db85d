//! Requests of a host to its engine: every method sends its request, reads the answer, and fails if there is none.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_sdk::{CancellationToken, Client, Error, ErrorKind, Handle, PermissionMode, query};
use serde_json::{Value, json};

use crate::fake::{Fake, INTRODUCES, within};

/// A method, the request that it must send, the engine's answer, and the value that the method returns, as JSON.
type Row = (fn(Handle) -> BoxFuture<'static, Result<Value, Error>>, Value, Value, Value);

fn as_json<T: serde::Serialize>(reply: T) -> Value {
    serde_json::to_value(reply).unwrap()
}

/// A row of the table.
macro_rules! row {
    (|$handle:ident| $call:expr, $request:tt, $answer:tt, $returned:tt) => {
        (
            |$handle| async move { $call.await.map(as_json) }.boxed(),
            json!($request),
            json!($answer),
            json!($returned),
        )
    };
}

#[rustfmt::skip]
fn methods() -> Vec<Row> {
    vec![
        row!(|it| it.interrupt(), {"subtype": "interrupt"}, {"still_queued": ["u"]}, {"still_queued": ["u"]}),
        row!(|it| it.interrupt_all(), {"subtype": "interrupt", "cancel_queued": true}, {"cancelled": ["u"]}, {"cancelled": ["u"]}),
        row!(|it| it.cancel_queued("u".into()), {"subtype": "cancel_async_message", "message_uuid": "u"}, {"cancelled": true}, true),
        row!(|it| it.set_permission_mode(PermissionMode::Plan), {"subtype": "set_permission_mode", "mode": "plan"}, {"mode": "plan"}, null),
        row!(|it| it.set_model(Some("m".to_owned())), {"subtype": "set_model", "model": "m"}, {}, null),
        row!(|it| it.set_model(None), {"subtype": "set_model"}, {}, null),
        row!(|it| it.set_max_thinking_tokens(Some(9)), {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 9}, {}, null),
        row!(|it| it.set_max_thinking_tokens(None), {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": null}, {}, null),
        row!(|it| it.rewind_files("u".into()), {"subtype": "rewind_files", "user_message_id": "u"}, {"canRewind": true}, {"canRewind": true}),
        row!(|it| it.rewind_preview("u".into()), {"subtype": "rewind_files", "user_message_id": "u", "dry_run": true}, {"canRewind": true, "filesChanged": ["a"]}, {"canRewind": true, "filesChanged": ["a"]}),
        row!(|it| it.mcp_server_status(), {"subtype": "mcp_status"}, {"mcpServers": []}, {"mcpServers": []}),
        row!(|it| it.set_mcp_servers(BTreeMap::new()), {"subtype": "mcp_set_servers", "servers": {}}, {"added": [], "removed": ["a"], "errors": {}}, {"added": [], "removed": ["a"], "errors": {}}),
        row!(|it| it.reconnect_mcp_server("a"), {"subtype": "mcp_reconnect", "serverName": "a"}, {}, null),
        row!(|it| it.toggle_mcp_server("a", false), {"subtype": "mcp_toggle", "serverName": "a", "enabled": false}, {}, null),
        row!(|it| it.sign_in_to_mcp_server("a").map(|reply| reply.map(|reply| reply.callback_port)), {"subtype": "mcp_authenticate", "serverName": "a"}, {"authUrl": "https://b", "callbackPort": 7}, 7),
        row!(|it| it.finish_mcp_sign_in("a", "http://c"), {"subtype": "mcp_oauth_callback_url", "serverName": "a", "callbackUrl": "http://c"}, {}, null),
        row!(|it| it.sign_out_of_mcp_server("a"), {"subtype": "mcp_clear_auth", "serverName": "a"}, {}, null),
        row!(|it| it.read_mcp_resource("a", "ui://b"), {"subtype": "mcp_read_resource", "serverName": "a", "uri": "ui://b"}, {"contents": []}, {"contents": []}),
        row!(|it| it.stop_task("t".into()), {"subtype": "stop_task", "task_id": "t"}, {}, null),
        row!(|it| it.task_output("t".into()), {"subtype": "get_task_output", "task_id": "t"}, {"output": "o", "total_bytes": 1, "truncated": false}, {"output": "o", "total_bytes": 1, "truncated": false}),
        row!(|it| it.move_to_background(), {"subtype": "background_tasks"}, {}, null),
        row!(|it| it.context_usage().map(|usage| usage.map(|usage| usage.total_tokens)), {"subtype": "get_context_usage"}, {"categories": [], "totalTokens": 7, "maxTokens": 8, "rawMaxTokens": 9, "percentage": 1, "model": "m"}, 7),
        row!(|it| it.usage().map(|usage| usage.map(|usage| usage.session.total_lines_added)), {"subtype": "get_usage"}, {"session": {"total_cost_usd": 0, "total_api_duration_ms": 0, "total_duration_ms": 0, "total_lines_added": 3, "total_lines_removed": 0, "model_usage": {}}}, 3),
        row!(|it| it.settings(), {"subtype": "get_settings"}, {"effective": {"model": "m"}, "sources": []}, {"effective": {"model": "m"}, "sources": []}),
        row!(|it| it.apply_settings(json!({"model": "m"})), {"subtype": "apply_flag_settings", "settings": {"model": "m"}}, {}, null),
        row!(|it| it.permission_rules().map(|rules| rules.map(|rules| rules.original_cwd)), {"subtype": "list_permission_rules"}, {"state": {"rules": [], "workspaceDirectories": [], "originalCwd": "/a", "managedOnly": false}}, "/a"),
        row!(|it| it.rename("t"), {"subtype": "rename_session", "title": "t"}, {}, null),
        row!(|it| it.read_file("a"), {"subtype": "read_file", "path": "a"}, {"contents": "c", "absPath": "/a"}, {"contents": "c", "absPath": "/a"}),
        row!(|it| it.seed_read_state("a", 5_u64), {"subtype": "seed_read_state", "path": "a", "mtime": 5}, {}, null),
        row!(|it| it.reload_skills(), {"subtype": "reload_skills"}, {"skills": []}, []),
        row!(|it| it.reload_plugins().map(|reply| reply.map(|reply| reply.error_count)), {"subtype": "reload_plugins"}, {"commands": [], "agents": [], "plugins": [], "mcpServers": [], "error_count": 2}, 2),
        row!(|it| it.engine_version(), {"subtype": "get_binary_version"}, {"version": "1"}, {"version": "1"}),
        row!(|it| it.reinitialize().map(|reply| reply.map(|reply| reply.pid)), {"subtype": "initialize"}, {"pid": 7}, 7),
    ]
}

/// Answers every request with the next line of the file `answers`, and stores the requests.
const REPLIES: &str = r#"
exec 3< answers
while read -r line; do
  printf '%s\n' "$line" >> requests
  id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
  read -r answer <&3
  printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":%s}}\n' "$id" "$answer"
done
"#;

#[tokio::test]
async fn every_method_sends_its_request_and_reads_its_answer() {
    let fake = Fake::new(&[INTRODUCES, REPLIES]);
    let answers: String = methods().iter().map(|(_, _, answer, _)| format!("{answer}\n")).collect();
    std::fs::write(fake.folder.path().join("answers"), answers).unwrap();
    let client = within(Client::connect(fake.options())).await.unwrap();
    for (call, request, _, returned) in methods() {
        let reply = within(call(client.handle())).await;
        let reply = reply.unwrap_or_else(|error| panic!("{request}: {error}"));
        assert_eq!(reply, returned, "{request}");
    }
    let requests = std::fs::read_to_string(fake.folder.path().join("requests")).unwrap();
    for (line, (_, expected, ..)) in requests.lines().zip(methods()) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["request"], expected);
    }
    assert_eq!(requests.lines().count(), methods().len());
}

/// Refuses every request as unknown, with the text that all engines use.
const KNOWS_NOTHING: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
  printf '{"type":"control_response","response":{"subtype":"error","request_id":"%s","error":"Unsupported control request subtype: it"}}\n' "$id"
done
"#;

#[tokio::test]
async fn a_request_that_the_engine_does_not_know_is_reported_as_unsupported() {
    let fake = Fake::new(&[INTRODUCES, KNOWS_NOTHING]);
    let client = within(Client::connect(fake.options())).await.unwrap();
    for (call, request, ..) in methods() {
        let error = within(call(client.handle())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{request}");
        let name = request["subtype"].as_str().unwrap();
        assert!(
            error.to_string().contains(&format!("does not know the request {name}")),
            "{error}"
        );
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn the_error_for_a_malformed_answer_names_the_request_and_the_field() {
    let fake = Fake::new(&[INTRODUCES, REPLIES]);
    std::fs::write(fake.folder.path().join("answers"), "{\"mcpServers\":7}\n").unwrap();
    let client = within(Client::connect(fake.options())).await.unwrap();
    let error = within(client.handle().mcp_server_status()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    let text = error.to_string();
    assert!(text.contains("mcp_status") && text.contains("mcpServers"), "{text}");
}

#[tokio::test]
async fn the_cancellation_token_ends_a_session_and_its_engine() {
    let fake = Fake::new(&["echo $$ > pid", INTRODUCES, "cat > /dev/null"]);
    let token = CancellationToken::new();
    let mut client =
        within(Client::connect(fake.options().cancel_with(token.clone()))).await.unwrap();
    client.send("hello").await.unwrap();
    token.cancel();
    let error = within(client.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(within(client.next()).await.is_none());
    crate::errors::gone(&fake.folder.path().join("pid")).await;
}

#[tokio::test]
async fn no_engine_starts_if_the_cancellation_token_has_fired_already() {
    let fake = Fake::new(&["touch started"]);
    let token = CancellationToken::new();
    token.cancel();
    let mut messages = query("hello", fake.options().cancel_with(token));
    let error = within(messages.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(within(messages.next()).await.is_none());
    assert!(!fake.folder.path().join("started").exists());
}
