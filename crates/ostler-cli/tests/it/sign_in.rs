//! Signing in to an MCP server over real pipes: `mcp_authenticate`, `mcp_oauth_callback_url`, `mcp_clear_auth`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;

const TOKEN: &str = "a-token-for-no-frame";

/// An MCP server with a tool, and its authorization server, where every user agrees.
pub(crate) async fn open() -> Arc<str> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base: Arc<str> = format!("http://{}", listener.local_addr().unwrap()).into();
    let router = Router::new()
        .route("/mcp", any(serve))
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route(
            "/register",
            post(|| async { json_of(&json!({"client_id": "c", "redirect_uris": []})) }),
        )
        .route("/authorize", get(authorize))
        .route("/token", post(token))
        .with_state(Arc::clone(&base));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    base
}

fn json_of(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn serve(State(base): State<Arc<str>>, headers: HeaderMap, body: Bytes) -> Response {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if sent != Some(&format!("Bearer {TOKEN}")) {
        let resource = format!("{base}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer resource_metadata=\"{resource}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        }),
        Some("tools/list") => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        _ => json!({}),
    };
    json_of(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

async fn resource(State(base): State<Arc<str>>) -> Response {
    json_of(&json!({"resource": format!("{base}/mcp"), "authorization_servers": [&*base]}))
}

async fn metadata(State(base): State<Arc<str>>) -> Response {
    let at = |path: &str| format!("{base}/{path}");
    json_of(&json!({
        "issuer": &*base, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
        "registration_endpoint": at("register"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    }))
}

async fn authorize(State(base): State<Arc<str>>, uri: Uri) -> Response {
    let asked = reqwest::Url::parse(&format!("{base}{uri}")).unwrap();
    let of = |name: &str| asked.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let back = format!("{}?code=the-code&state={}", of("redirect_uri"), of("state"));
    (StatusCode::FOUND, [(header::LOCATION, back)]).into_response()
}

async fn token(body: String) -> Response {
    assert!(body.contains("code=the-code") && body.contains("code_verifier="), "{body}");
    json_of(&json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}))
}

pub(crate) fn browser(policy: reqwest::redirect::Policy) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let browser = reqwest::Client::builder().no_proxy().tls_certs_only([]);
    browser.redirect(policy).build().unwrap()
}

fn status(talk: &mut Talk) -> Value {
    talk.asked(json!({"subtype": "mcp_status"}))["mcpServers"][0]["status"].clone()
}

fn about(subtype: &str, server: &str) -> Value {
    json!({"subtype": subtype, "serverName": server})
}

pub(crate) fn tokens(ostler: &Ostler) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(ostler.path("no-home/.claude/mcp-oauth")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_signs_the_user_in_and_out_and_never_sees_a_token() {
    let base = open().await;
    let ostler = Ostler::new().env("ANTHROPIC_API_KEY", "key");
    let far = json!({"type": "http", "url": format!("{base}/mcp")});
    let config = json!({"mcpServers": {"far": far}}).to_string();
    let mut talk = Talk::with(&ostler, &["--mcp-config", &config]);
    talk.refused(about("mcp_reconnect", "far"));
    assert_eq!(status(&mut talk), "needs-auth");
    let callback = |url: &str| json!({"subtype": "mcp_oauth_callback_url", "serverName": "far", "callbackUrl": url});
    assert_eq!(talk.refused(callback("http://x/")), "No active OAuth flow for server: far");
    assert_eq!(talk.refused(about("mcp_authenticate", "no")), "Server not found: no");
    assert_eq!(talk.refused(about("mcp_clear_auth", "no")), "Server not found: no");

    // The host brings the address back.
    let begun = talk.asked(about("mcp_authenticate", "far"));
    assert_eq!(
        (&begun["requiresUserAction"], &begun["callbackExpected"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(begun["redirectScheme"], "localhost");
    let url = begun["authUrl"].as_str().unwrap();
    let (state, port) = (begun["state"].as_str().unwrap(), &begun["callbackPort"]);
    assert!(url.contains(state) && url.contains(&format!("localhost%3A{port}")), "{begun}");
    let answer = browser(reqwest::redirect::Policy::none()).get(url).send().await.unwrap();
    let back = answer.headers()["location"].to_str().unwrap();
    let forged = format!("{}&state=forged", back.split_once("&state=").unwrap().0);
    talk.refused(callback(&forged));
    talk.asked(callback(back));
    talk.asked(about("mcp_reconnect", "far"));
    assert_eq!(status(&mut talk), "connected");
    let [file] = tokens(&ostler).try_into().unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    talk.asked(about("mcp_clear_auth", "far"));
    assert!(tokens(&ostler).is_empty());
    talk.refused(about("mcp_reconnect", "far"));
    assert_eq!(status(&mut talk), "needs-auth");

    // The browser comes back by itself, and the server is connected without another request.
    let begun = talk.asked(about("mcp_authenticate", "far"));
    let follow = browser(reqwest::redirect::Policy::default());
    let page = follow.get(begun["authUrl"].as_str().unwrap()).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("close this window"));
    while status(&mut talk) != "connected" {
        tokio::task::yield_now().await;
    }
    let ran = talk.end();
    assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN), "no output has the token");
}
