//! Log messages, completion, watched resources, and what MCP 2026-07-28 adds.

use std::time::Duration;

use ostler_mcp::{
    Connection, Context, Level, Prompt, PromptMessage, Resource, Server, tool_with_context,
};
use serde_json::{Value, json};

use crate::support::{calc, error, request, result, within};

const LEVELS: [Level; 3] = [Level::Debug, Level::Warning, Level::Emergency];

pub(crate) fn logging() -> Server {
    let log = tool_with_context("log", "Logs", |(): (), context: Context| {
        for level in LEVELS {
            context.log(level, "test", json!({"is": level.as_str()}));
        }
    });
    Server::new("logger", "1").tool(log)
}

/// The levels of the messages that a call sends.
async fn logged(connection: &Connection, meta: Value) -> Vec<String> {
    let params = json!({"name": "log", "_meta": meta});
    within("a call", connection.handle(request(1, "tools/call", params))).await.unwrap();
    let mut levels = Vec::new();
    // Everything was sent before the answer.
    while let Ok(message) =
        tokio::time::timeout(Duration::ZERO, connection.next_notification()).await
    {
        assert_eq!(message["method"], "notifications/message");
        assert_eq!(message["params"]["logger"], "test");
        levels.push(message["params"]["level"].as_str().unwrap().to_owned());
    }
    levels
}

// Mutants: `log` without the comparison of levels; `session_client` with a level also without `logging`.
#[tokio::test]
async fn log_messages_below_the_level_are_not_sent() {
    let connection = logging().logging().connect();
    let sent = logged(&connection, json!({})).await;
    assert_eq!(sent, ["warning", "emergency"], "info is the level without a request");
    for (level, expected) in
        [("debug", &["debug", "warning", "emergency"][..]), ("error", &["emergency"])]
    {
        let answer = result(&connection, "logging/setLevel", json!({"level": level})).await;
        assert_eq!(answer, json!({}));
        assert_eq!(logged(&connection, json!({})).await, expected, "{level}");
    }
    let (code, text) = error(&connection, "logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(code, -32602);
    assert!(text.contains("`loud` is not a log level"), "{text}");

    let silent = logging().connect();
    assert!(logged(&silent, json!({})).await.is_empty(), "it does not declare that it logs");
    assert_eq!(error(&silent, "logging/setLevel", json!({"level": "info"})).await.0, -32601);
}

fn stateless() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[tokio::test]
async fn without_a_session_each_request_says_which_log_messages_it_wants() {
    let connection = logging().logging().connect();
    assert!(logged(&connection, stateless()).await.is_empty());
    let mut meta = stateless();
    meta["io.modelcontextprotocol/logLevel"] = "warning".into();
    assert_eq!(logged(&connection, meta).await, ["warning", "emergency"]);
}

#[tokio::test]
async fn arguments_are_completed() {
    let prompt = Prompt::new("paint", "Paints", |_| async {
        Ok::<_, String>(vec![PromptMessage::user("paint")])
    });
    let prompt = prompt.required("colour", "Which").optional("size", "How large");
    let prompt =
        prompt.complete("colour", |typed| (0..150).map(|n| format!("{typed}{n}")).collect());
    let notes = Resource::template("note://{day}", "notes", |_, _| async { Err("nothing") });
    let notes = notes.complete("day", |typed| vec![format!("{typed}day")]);
    let connection = Server::new("painter", "1").prompt(prompt).resource(notes).connect();
    let complete = async |reference: Value, argument: &str, value: &str| {
        let argument = json!({"name": argument, "value": value});
        let params = json!({"ref": reference, "argument": argument});
        result(&connection, "completion/complete", params).await["completion"].clone()
    };
    let paint = || json!({"type": "ref/prompt", "name": "paint"});
    let colours = complete(paint(), "colour", "re").await;
    assert_eq!(colours["values"].as_array().unwrap().len(), 100);
    assert_eq!(colours["values"][0], "re0");
    assert_eq!((&colours["total"], &colours["hasMore"]), (&json!(150), &json!(true)));
    let none = json!({"values": [], "total": 0, "hasMore": false});
    assert_eq!(complete(paint(), "size", "l").await, none);
    let days = complete(json!({"type": "ref/resource", "uri": "note://{day}"}), "day", "mon").await;
    assert_eq!(days["values"], json!(["monday"]));
    for reference in
        [json!({"type": "ref/prompt", "name": "draw"}), json!({"type": "ref/x"}), json!(7)]
    {
        let params = json!({"ref": reference, "argument": {"name": "a", "value": ""}});
        assert_eq!(error(&connection, "completion/complete", params).await.0, -32602);
    }
    let offered = result(&connection, "initialize", json!({})).await["capabilities"].clone();
    assert_eq!(offered["completions"], json!({}));
}

// Mutant: `announce` without the check of what a session watches.
#[tokio::test]
async fn only_clients_that_watch_a_resource_are_notified_of_its_changes() {
    let server = calc();
    let (watching, other) = (server.connect(), server.connect());
    let params = || json!({"uri": "note://today"});
    assert_eq!(result(&watching, "resources/subscribe", params()).await, json!({}));
    server.resource_updated("note://today");
    server.resource_updated("note://tomorrow/a");
    let updated = within("an update", watching.next_notification()).await;
    assert_eq!(updated["method"], "notifications/resources/updated");
    assert_eq!(updated["params"], json!({"uri": "note://today"}));
    result(&watching, "resources/unsubscribe", params()).await;
    server.resource_updated("note://today");
    server.remove_prompt("greet");
    for connection in [&watching, &other] {
        let next = within("the changed list", connection.next_notification()).await;
        assert_eq!(next["method"], "notifications/prompts/list_changed");
    }
    let missing = error(&watching, "resources/subscribe", json!({"uri": "x://y"})).await;
    assert_eq!(missing.0, -32002);
}

// Mutant: `watch` without a limit.
#[tokio::test]
async fn a_client_cannot_watch_endlessly_many_resources() {
    let connection = calc().connect();
    for n in 0..1024 {
        let params = json!({"uri": format!("note://{n}/x")});
        result(&connection, "resources/subscribe", params).await;
    }
    let (code, text) =
        error(&connection, "resources/subscribe", json!({"uri": "note://a/b"})).await;
    assert_eq!(code, -32000);
    assert!(text.contains("1024"), "{text}");
    // One that is watched already does not count again.
    result(&connection, "resources/subscribe", json!({"uri": "note://0/x"})).await;
}

async fn ask(connection: &Connection, method: &str, mut params: Value) -> Value {
    params["_meta"] = stateless();
    within(method, connection.handle(request(1, method, params))).await.unwrap()
}

#[tokio::test]
async fn without_a_session_results_say_their_type_and_how_long_they_hold() {
    let connection = calc().cache(Duration::from_secs(5), true).connect();
    let found = ask(&connection, "server/discover", json!({})).await["result"].clone();
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert_eq!(found["capabilities"]["tools"], json!({"listChanged": true}));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "calc");
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "note://today"})),
        ("server/discover", json!({})),
    ] {
        let answer = ask(&connection, method, params).await["result"].clone();
        assert_eq!(answer["resultType"], "complete", "{method}");
        assert_eq!((&answer["ttlMs"], &answer["cacheScope"]), (&json!(5000), &json!("public")));
    }
    let call =
        ask(&connection, "tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
    let call = call.await["result"].clone();
    assert_eq!(
        (&call["resultType"], &call["content"][0]["text"]),
        (&json!("complete"), &json!("3"))
    );
    assert!(call.get("ttlMs").is_none());
    let missing = ask(&connection, "resources/read", json!({"uri": "x://y"})).await;
    assert_eq!(missing["error"]["code"], -32602);
    assert_eq!(missing["error"]["data"], json!({"uri": "x://y"}));
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown"] {
        assert_eq!(ask(&connection, method, json!({})).await["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn without_a_session_a_request_must_describe_its_client() {
    let connection = calc().connect();
    let code = async |meta: Value| {
        let request = request(1, "server/discover", json!({"_meta": meta}));
        within("discover", connection.handle(request)).await.unwrap()["error"].clone()
    };
    assert_eq!(code(json!({})).await["code"], -32602);
    let mut older = stateless();
    older["io.modelcontextprotocol/protocolVersion"] = "v999".into();
    let refused = code(older).await;
    assert_eq!(refused["code"], -32022);
    assert_eq!(refused["data"]["requested"], "v999");
    assert_eq!(refused["data"]["supported"][0], "2026-07-28");
    let mut without = stateless();
    without.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(code(without).await["code"], -32602);
}

// Mutant: `announce` ignores the filter of a stream.
#[tokio::test]
async fn a_stream_carries_only_the_notifications_that_it_was_opened_for() {
    let server = calc();
    let connection = server.connect();
    let wanted = json!({"promptsListChanged": true, "resourceSubscriptions": ["note://today"]});
    let params = json!({"notifications": wanted, "_meta": stateless()});
    let listen = request("s", "subscriptions/listen", params);
    let stream = tokio::spawn({
        let connection = connection.clone();
        async move { connection.handle(listen).await }
    });
    let id = json!({"io.modelcontextprotocol/subscriptionId": "s"});
    let first = within("the first message", connection.next_notification()).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"], json!({"_meta": id, "notifications": wanted}));
    server.remove_tool("add");
    server.resource_updated("note://other/x");
    server.resource_updated("note://today");
    let mut of_stream = Vec::new();
    // The session itself is notified of changed lists too.
    while of_stream.is_empty() {
        let next = within("an update", connection.next_notification()).await;
        if next["params"]["_meta"] == id {
            of_stream.push(next["method"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(of_stream, ["notifications/resources/updated"]);
    let params = json!({"requestId": "s"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    connection.handle(cancel).await;
    assert_eq!(within("the stream", stream).await.unwrap(), None);
}
