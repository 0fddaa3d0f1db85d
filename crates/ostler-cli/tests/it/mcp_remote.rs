//! Servers behind a URL: headers that a command prints, the other name of HTTP, and WebSockets.

use std::fs;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, post};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::mcp::{calling, place};
use crate::talk::Talk;

type Seen = Arc<Mutex<Vec<HeaderMap>>>;

fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"}})
        }
        Some("tools/list") => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        Some("tools/call") => json!({"content": [{"type": "text", "text": "from afar"}]}),
        _ => {
            return Some(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}),
            );
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

async fn http(State(seen): State<Seen>, headers: HeaderMap, body: String) -> Response {
    seen.lock().unwrap().push(headers);
    match serde_json::from_str(&body).ok().as_ref().and_then(answer) {
        Some(answer) => {
            ([("content-type", "application/json")], answer.to_string()).into_response()
        }
        None => StatusCode::ACCEPTED.into_response(),
    }
}

async fn socket(
    State(seen): State<Seen>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    seen.lock().unwrap().push(headers);
    upgrade.protocols(["mcp"]).on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.recv().await {
            let Message::Text(text) = message else { continue };
            if let Some(answer) = answer(&serde_json::from_str(&text).unwrap()) {
                socket.send(Message::text(answer.to_string())).await.unwrap();
            }
        }
    })
}

async fn serve() -> (String, Seen) {
    let seen = Seen::default();
    let router = Router::new()
        .route("/mcp", post(http))
        .route("/socket", any(socket))
        .route("/none", any(|| async { StatusCode::NOT_FOUND }))
        .with_state(Arc::clone(&seen));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, seen)
}

// Mutants: `streamable-http` or `ws` is not known; the helper does not run; it runs in another folder.
#[tokio::test(flavor = "multi_thread")]
async fn servers_behind_a_url_get_the_headers_that_a_command_prints() {
    let (address, seen) = serve().await;
    for (kind, url) in [
        ("streamable-http", format!("http://{address}/mcp")),
        ("http", format!("http://{address}/mcp")),
        ("ws", format!("ws://{address}/socket")),
    ] {
        seen.lock().unwrap().clear();
        let (_api, ostler) = place(calling("mcp__far__t", json!({}))).await;
        fs::write(ostler.path("secret"), "from-a-file").unwrap();
        let helper =
            r#"printf '{"X-Secret": "%s for %s"}' "$(cat secret)" "$CLAUDE_CODE_MCP_SERVER_NAME""#;
        let entry = json!({"type": kind, "url": url, "headers": {"X-Static": "1"}, "headersHelper": helper});
        let config = json!({"mcpServers": {"far": entry}}).to_string();
        let mut talk =
            Talk::with(&ostler, &["--mcp-config", &config, "--allowedTools=mcp__far__*"]);
        talk.say("go", None);
        assert_eq!(talk.result()["result"], "from afar", "{kind}");
        let status = talk.asked(json!({"subtype": "mcp_status"}));
        assert_eq!(status["mcpServers"][0]["status"], "connected", "{kind}: {status}");
        assert!(!talk.story().contains("from-a-file"), "the header may be secret");
        talk.end();
        for headers in seen.lock().unwrap().iter() {
            assert_eq!(headers["x-secret"], "from-a-file for far", "{kind}");
            assert_eq!(headers["x-static"], "1", "{kind}");
        }
        assert!(!seen.lock().unwrap().is_empty());
    }
}

// Mutant: the reason is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_a_url_that_cannot_be_reached_fails_with_the_reason() {
    let (address, _seen) = serve().await;
    for (entry, part) in [
        (json!({"type": "ws", "url": format!("ws://{address}/none")}), "404"),
        (json!({"type": "ws", "url": "ws://127.0.0.1:9/"}), "127.0.0.1:9"),
        (json!({"type": "ws", "url": format!("http://{address}/socket")}), "ws or wss"),
        (
            json!({"type": "http", "url": format!("http://{address}/mcp"), "headersHelper": "exit 7"}),
            "exit status: 7",
        ),
        (
            json!({"type": "ws", "url": format!("ws://{address}/socket"), "headersHelper": "echo no"}),
            "headersHelper",
        ),
        (json!({"type": "pigeon", "url": "x"}), "pigeon"),
    ] {
        let (_api, ostler) = place(Script::new().rule(when(), reply().text("Fine."))).await;
        let config = json!({"mcpServers": {"far": entry}}).to_string();
        let mut talk = Talk::with(&ostler, &["--mcp-config", &config]);
        talk.say("go", None);
        talk.result();
        let status = talk.asked(json!({"subtype": "mcp_status"}));
        let far = &status["mcpServers"][0];
        assert_eq!(far["status"], "failed", "{entry}: {status}");
        assert!(far["error"].as_str().unwrap().contains(part), "{part}: {far}");
        let init = talk.heard.iter().find(|frame| frame["subtype"] == "init").unwrap();
        assert_eq!(init["mcp_servers"][0]["status"], "failed");
        talk.end();
    }
}

// Mutant: the variable is not set.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_knows_the_folder_of_the_project() {
    let (_api, ostler) = place(calling("mcp__shell__greet", json!({}))).await;
    let script = format!("GREETED=$CLAUDE_PROJECT_DIR\n{}", crate::mcp::SERVER);
    let config = json!({"mcpServers": {"shell": {"command": "/bin/sh", "args": ["-c", script]}}});
    let mut talk =
        Talk::with(&ostler, &["--mcp-config", &config.to_string(), "--allowedTools=mcp__shell"]);
    talk.say("greet", None);
    let folder = ostler.folder.path().canonicalize().unwrap();
    assert_eq!(talk.result()["result"], format!("hello {}", folder.display()));
    talk.end();
}
