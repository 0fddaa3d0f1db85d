//! Servers behind a URL: headers that a command prints, the other name of HTTP, and WebSockets.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, post};
use ostler_testkit::{Script, reply, when};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response as Upgrade};

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

/// Answers requests whose header is what the file says, and refuses all others.
async fn changing(
    State(place): State<(Arc<std::path::PathBuf>, Seen)>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let expected = fs::read_to_string(&*place.0).unwrap();
    if headers.get("x-key").is_none_or(|key| key != expected.as_str()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    http(State(place.1), headers, body).await
}

// Mutants: the helper does not run again; it runs again and its headers are not sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_for_headers_runs_again_when_the_server_refuses_them() {
    let call = || reply().tool_use("mcp__far__t", json!({}));
    let script = Script::new()
        .rule(when().prompt_contains("go").has_tool_result(false), call())
        .rule(when(), reply().text("{{tool_result}}"));
    let (_api, ostler) = place(script).await;
    let key = Arc::new(ostler.path("key"));
    fs::write(&*key, "first").unwrap();
    let router =
        Router::new().route("/mcp", post(changing)).with_state((Arc::clone(&key), Seen::default()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let helper = r#"echo x >> runs; printf '{"X-Key": "%s"}' "$(cat key)""#;
    let entry = json!({"type": "http", "url": url, "headersHelper": helper});
    let config = json!({"mcpServers": {"far": entry}}).to_string();
    let mut talk = Talk::with(&ostler, &["--mcp-config", &config, "--allowedTools=mcp__far"]);
    talk.say("go", None);
    assert_eq!(talk.result()["result"], "from afar");
    let runs = || fs::read_to_string(ostler.path("runs")).unwrap().lines().count();
    assert_eq!(runs(), 1);
    // The key is exchanged while the session runs.
    fs::write(&*key, "second").unwrap();
    talk.say("go again", None);
    assert_eq!(talk.result()["result"], "from afar");
    assert_eq!(runs(), 2);
    talk.say("go once more", None);
    assert_eq!(talk.result()["result"], "from afar");
    assert_eq!(runs(), 2, "the new headers are kept");
    talk.end();
}

/// A file of the certificates for `localhost`, which no machine trusts.
fn tls(name: &str) -> String {
    format!("{}/tests/it/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A WebSocket with TLS at this address; returns its port.
fn secure_socket(host: &str) -> u16 {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = CertificateDer::from_pem_file(tls("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(tls("server.key")).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind((host, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || serve_securely(stream.unwrap(), config));
        }
    });
    port
}

/// Ends when the client does, which may be in the middle of the handshake.
fn serve_securely(stream: TcpStream, config: Arc<ServerConfig>) -> Option<()> {
    let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    #[expect(clippy::result_large_err, reason = "the library wants it")]
    let with_protocol = |_: &Request, mut answer: Upgrade| {
        answer.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
        Ok(answer)
    };
    let mut socket = tungstenite::accept_hdr(stream, with_protocol).ok()?;
    loop {
        let tungstenite::Message::Text(text) = socket.read().ok()? else { continue };
        if let Some(answer) = answer(&serde_json::from_str(&text).unwrap()) {
            socket.send(tungstenite::Message::text(answer.to_string())).ok()?;
        }
    }
}

// Mutant: the name of the server is not compared with the certificate (always `localhost`).
#[tokio::test(flavor = "multi_thread")]
async fn a_secure_websocket_is_used_only_with_a_certificate_for_its_name() {
    let (port, other) = (secure_socket("127.0.0.1"), secure_socket("127.0.0.2"));
    let trusted = Some(tls("authority.pem"));
    for (host, authority, expected) in [
        ("localhost", &trusted, Ok("from afar")),
        ("127.0.0.1", &trusted, Ok("from afar")),
        ("127.0.0.2", &trusted, Err("certificate")),
        ("localhost", &None, Err("certificate")),
    ] {
        let (_api, mut ostler) = place(calling("mcp__far__t", json!({}))).await;
        if let Some(authority) = authority {
            ostler = ostler.env("SSL_CERT_FILE", authority);
        }
        let port = if host == "127.0.0.2" { other } else { port };
        let entry = json!({"type": "ws", "url": format!("wss://{host}:{port}/")});
        let config = json!({"mcpServers": {"far": entry}}).to_string();
        let mut talk = Talk::with(&ostler, &["--mcp-config", &config, "--allowedTools=mcp__far"]);
        talk.say("go", None);
        let result = talk.result()["result"].as_str().unwrap().to_owned();
        let status = talk.asked(json!({"subtype": "mcp_status"}))["mcpServers"][0].clone();
        match expected {
            Ok(expected) => assert_eq!(result, expected, "{host}: {status}"),
            Err(part) => {
                assert_ne!(result, "from afar", "{host}");
                let error = status["error"].as_str().unwrap();
                assert!(error.to_lowercase().contains(part), "{host}: {error}");
            }
        }
        talk.end();
    }
}
