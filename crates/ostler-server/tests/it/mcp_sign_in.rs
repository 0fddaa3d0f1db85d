//! Signing in to an MCP server on the server: each user has own tokens in each space, and the browser comes back to the
//! page. One program on loopback is the MCP server and its authorization server.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::spaces::session_in;

/// An MCP server whose tool `whoami` says which token it got; the authorization server issues `access-1`, `access-2` …
#[derive(Clone)]
struct Place {
    base: Arc<str>,
    issued: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Place {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap()).into();
        let place = Self { base, issued: Arc::default() };
        let router = Router::new()
            .route("/mcp", any(serve))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/token", post(token))
            .with_state(place.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        place
    }

    fn config(&self) -> Value {
        json!({"type": "http", "url": format!("{}/mcp", self.base)})
    }

    /// The address to which the authorization server leads the browser of a user who agrees.
    fn agreed(&self, url: &str) -> String {
        let url = reqwest::Url::parse(url).unwrap();
        let of = |name: &str| {
            let mut pairs = url.query_pairs();
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap()
        };
        let mut back = reqwest::Url::parse(&of("redirect_uri")).unwrap();
        back.query_pairs_mut()
            .append_pair("code", "the-code")
            .append_pair("state", &of("state"))
            .append_pair("iss", &self.base);
        back.to_string()
    }
}

fn json_of(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn serve(State(place): State<Place>, headers: HeaderMap, body: Bytes) -> Response {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = sent.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
    if !place.issued.lock().unwrap().contains(&token) {
        let resource = format!("{}/.well-known/oauth-protected-resource/mcp", place.base);
        let challenge = format!("Bearer resource_metadata=\"{resource}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }),
        Some("tools/list") => {
            json!({"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]})
        }
        Some("tools/call") => {
            let number = token.replace("access-", "account ");
            json!({"content": [{"type": "text", "text": number}]})
        }
        Some(method) if method.starts_with("notifications/") => {
            return StatusCode::ACCEPTED.into_response();
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return json_of(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
        }
    };
    json_of(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

async fn resource(State(place): State<Place>) -> Response {
    let base = &place.base;
    json_of(&json!({"resource": format!("{base}/mcp"), "authorization_servers": [&**base]}))
}

async fn metadata(State(place): State<Place>) -> Response {
    let base = &place.base;
    json_of(&json!({
        "issuer": &**base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    }))
}

async fn register(body: String) -> Response {
    let asked: Value = serde_json::from_str(&body).unwrap();
    json_of(&json!({"client_id": "c-1", "redirect_uris": asked["redirect_uris"]}))
}

async fn token(State(place): State<Place>) -> Response {
    let mut issued = place.issued.lock().unwrap();
    let access = format!("access-{}", issued.len() + 1);
    issued.push(access.clone());
    json_of(&json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600}))
}

fn script() -> Script {
    Script::new()
        .rule(when().has_tool_result(true), reply().text("{{tool_result}}"))
        .rule(when().prompt_contains("who"), reply().tool_use("mcp__far__whoami", json!({})))
        .rule(when(), reply().text("Nothing."))
}

async fn says(client: &Client, session: &str, prompt: &str) -> String {
    let run = client.prompt(session, prompt).await;
    let run = client.until(&run, "completed").await;
    run["outcome"]["result"].as_str().unwrap_or_default().to_owned()
}

async fn status(client: &Client, session: &str, expected: &str) -> Value {
    let path = format!("/api/sessions/{session}/mcp-servers");
    let is_it = |list: &Value| list["items"][0]["status"] == expected;
    client.watch(&path, expected, is_it).await["items"][0].clone()
}

async fn begin(client: &Client, session: &str) -> String {
    let path = format!("/api/sessions/{session}/mcp-servers/far/sign-in");
    client.post(&path, json!({})).await["url"].as_str().unwrap().to_owned()
}

async fn finish(client: &Client, address: &str) -> u16 {
    client.ask(Method::POST, "/api/mcp/sign-in", Some(json!({"url": address}))).await.0.as_u16()
}

/// A space with the server and the member ann.
async fn stage(place: &Place) -> (Desk, Client, Client) {
    let desk = Desk::open(script()).await;
    let (owner, ann) = (desk.client(), desk.client_of("ann").await);
    let policy = json!({"allowed": ["mcp__far"]});
    for space in ["team", "other"] {
        owner.post("/api/spaces", json!({"id": space, "policy": policy})).await;
        let member = Some(json!({"role": "member"}));
        owner.ask(Method::PUT, &format!("/api/spaces/{space}/members/ann"), member).await;
        let path = format!("/api/spaces/{space}/mcp-servers/far");
        assert_eq!(owner.ask(Method::PUT, &path, Some(place.config())).await.0, 204);
    }
    (desk, owner, ann)
}

// Mutants: `tokens_of_user` that is the same for all; `tokens` without the space; `finish_sign_in` that does not compare the
// user.
#[tokio::test]
async fn each_user_signs_in_with_an_own_account_in_each_space_and_no_other_user_gets_it() {
    let place = Place::open().await;
    let (desk, owner, ann) = stage(&place).await;
    let (of_owner, of_ann) = (session_in(&owner, "team").await, session_in(&ann, "team").await);
    for (client, session) in [(&owner, &of_owner), (&ann, &of_ann)] {
        says(client, session, "hello").await;
        status(client, session, "needs-auth").await;
    }
    let url = begin(&owner, &of_owner).await;
    let address = place.agreed(&url);
    assert!(address.starts_with(&format!("{}/mcp-callback?", owner.base)), "{address}");
    // The page of another user, who was led to the address, does not finish it: the account would be the wrong one.
    assert_eq!(finish(&ann, &address).await, 404);
    assert_eq!(
        finish(&owner, &format!("{}/mcp-callback?code=x&state=forged", owner.base)).await,
        404
    );
    assert_eq!(finish(&owner, &address).await, 200);
    assert_eq!(finish(&owner, &address).await, 404, "an address is used once");
    status(&owner, &of_owner, "connected").await;
    assert_eq!(says(&owner, &of_owner, "who am I").await, "account 1");
    // Another session of the same user in the same space is signed in, and no one else is.
    let second = session_in(&owner, "team").await;
    assert_eq!(says(&owner, &second, "who am I").await, "account 1");
    let third = session_in(&ann, "team").await;
    says(&ann, &third, "who am I").await;
    status(&ann, &third, "needs-auth").await;
    let elsewhere = session_in(&owner, "other").await;
    says(&owner, &elsewhere, "who am I").await;
    status(&owner, &elsewhere, "needs-auth").await;
    // Ann signs in, and both have their own account.
    let address = place.agreed(&begin(&ann, &of_ann).await);
    assert_eq!(finish(&ann, &address).await, 200);
    assert_eq!(says(&ann, &of_ann, "who am I").await, "account 2");
    assert_eq!(says(&owner, &of_owner, "who am I").await, "account 1");
    for (client, session) in [(&owner, &of_owner), (&ann, &of_ann)] {
        let log = json!(client.log(session).await).to_string();
        assert!(!log.contains("access-") && !log.contains("the-code"), "{log}");
    }
    // Signing out holds in all sessions of the user that run.
    let path = format!("/api/sessions/{of_owner}/mcp-servers/far/sign-in");
    assert_eq!(owner.ask(Method::DELETE, &path, None).await.0, 204);
    for session in [&of_owner, &second] {
        status(&owner, session, "needs-auth").await;
    }
    assert_eq!(says(&ann, &of_ann, "who am I").await, "account 2");
    // A member who leaves the space loses the tokens there.
    let tokens = || files(&desk.data().join("data/mcp-oauth"));
    assert_eq!(tokens(), 1);
    assert_eq!(owner.ask(Method::DELETE, "/api/spaces/team/members/ann", None).await.0, 204);
    assert_eq!(tokens(), 0);
}

/// How many files are below a folder.
fn files(folder: &std::path::Path) -> usize {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

// Mutants: `sign_in` that does not ask the engine for the state; `own_session` that accepts everyone.
#[tokio::test]
async fn signing_in_needs_a_server_that_asks_for_it_and_a_session_of_ones_own() {
    let place = Place::open().await;
    let (_desk, owner, ann) = stage(&place).await;
    let of_ann = session_in(&ann, "team").await;
    says(&ann, &of_ann, "hello").await;
    let path = |name: &str| format!("/api/sessions/{of_ann}/mcp-servers/{name}/sign-in");
    let (status, said) = owner.ask(Method::POST, &path("far"), Some(json!({}))).await;
    assert_eq!(status, 403, "{said}");
    assert_eq!(ann.ask(Method::POST, &path("none"), Some(json!({}))).await.0, 409);
    let (status, _) = owner.ask(Method::DELETE, &path("far"), None).await;
    assert_eq!(status, 403);
}
