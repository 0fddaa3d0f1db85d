//! Signing in to a server over real HTTP on loopback: one program is the MCP server and its authorization server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use ostler_mcp::{
    CallOptions, Client, ClientOptions, Connection, Endpoint, Error, OAuthOptions, Remote, Status,
};
use serde_json::{Value, json};

use crate::support::{calc, within};

const REDIRECT: &str = "http://localhost:9/callback";

/// What the authorization server issued, and how it behaves.
#[derive(Default)]
struct Issued {
    /// The tokens that the MCP server accepts.
    valid: Vec<String>,
    n_tokens: usize,
    n_registrations: usize,
    /// The grants that were used, in order.
    grants: Vec<String>,
    /// In seconds.
    expires_in: u64,
    /// The issuer in the callback; the server's own by default.
    issuer: Option<String>,
    /// The address of the token endpoint; the server's own by default.
    token_endpoint: Option<String>,
}

#[derive(Clone)]
struct Place {
    base: Arc<str>,
    connection: Connection,
    issued: Arc<Mutex<Issued>>,
}

impl Place {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap()).into();
        let issued = Arc::new(Mutex::new(Issued { expires_in: 3600, ..Issued::default() }));
        let place = Self { base, connection: calc().connect(), issued };
        let router = Router::new()
            .route("/mcp", any(serve))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(place.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        place
    }

    fn issued(&self) -> std::sync::MutexGuard<'_, Issued> {
        self.issued.lock().unwrap()
    }

    fn client(&self, folder: &Path) -> Client {
        let remote = Remote { url: format!("{}/mcp", self.base), ..Remote::default() };
        let options = ClientOptions::default().oauth(OAuthOptions::default().folder(folder));
        Client::new("far", Endpoint::Http(remote), options)
    }

    /// A client whose user has signed in.
    async fn signed_in(&self, folder: &Path) -> Client {
        let client = self.client(folder);
        let error = within("connecting", client.reconnect()).await.unwrap_err();
        assert!(error.needs_auth(), "{error}");
        sign_in(&client).await.unwrap();
        within("connecting", client.reconnect()).await.unwrap();
        client
    }
}

async fn serve(State(place): State<Place>, headers: HeaderMap, body: Bytes) -> Response {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = sent.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if !place.issued().valid.iter().any(|valid| valid == token) {
        let resource = format!("{}/.well-known/oauth-protected-resource/mcp", place.base);
        let challenge = format!("Bearer resource_metadata=\"{resource}\"");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    match place.connection.handle(message).await {
        Some(answer) => json_of(&answer),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

fn json_of(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

async fn resource(State(place): State<Place>) -> Response {
    let base = &place.base;
    json_of(&json!({"resource": format!("{base}/mcp"), "authorization_servers": [&**base]}))
}

async fn metadata(State(place): State<Place>) -> Response {
    let base = &place.base;
    let token_endpoint = place.issued().token_endpoint.clone();
    json_of(&json!({
        "issuer": &**base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": token_endpoint.unwrap_or_else(|| format!("{base}/token")),
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    }))
}

async fn register(State(place): State<Place>) -> Response {
    place.issued().n_registrations += 1;
    let answer =
        json!({"client_id": "c-1", "client_secret": "quiet-secret", "redirect_uris": [REDIRECT]});
    json_of(&answer)
}

async fn authorize(State(place): State<Place>, uri: Uri) -> Response {
    let asked = reqwest::Url::parse(&format!("{}{uri}", place.base)).unwrap();
    let of = |name: &str| {
        asked.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    assert_eq!(of("code_challenge_method").as_deref(), Some("S256"));
    let issuer = place.issued().issuer.clone().unwrap_or_else(|| place.base.to_string());
    let mut back = reqwest::Url::parse(&of("redirect_uri").unwrap()).unwrap();
    back.query_pairs_mut()
        .append_pair("code", "the-code")
        .append_pair("state", &of("state").unwrap())
        .append_pair("iss", &issuer);
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}

async fn token(State(place): State<Place>, body: String) -> Response {
    let form = reqwest::Url::parse(&format!("http://a/?{body}")).unwrap();
    let of = |name: &str| {
        form.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    let mut issued = place.issued();
    let grant = of("grant_type").unwrap();
    issued.grants.push(grant.clone());
    let is_good = match grant.as_str() {
        "authorization_code" => {
            of("code").as_deref() == Some("the-code") && of("code_verifier").is_some()
        }
        _ => of("refresh_token") == Some(format!("refresh-{}", issued.n_tokens)),
    };
    if !is_good {
        let error = json!({"error": "invalid_grant"}).to_string();
        let kind = [(header::CONTENT_TYPE, "application/json")];
        return (StatusCode::BAD_REQUEST, kind, error).into_response();
    }
    issued.n_tokens += 1;
    let (number, access) = (issued.n_tokens, format!("access-{}", issued.n_tokens));
    issued.valid = vec![access.clone()];
    json_of(&json!({
        "access_token": access, "token_type": "Bearer", "expires_in": issued.expires_in,
        "refresh_token": format!("refresh-{number}"),
    }))
}

/// The address to which the authorization server leads the browser of a user who agrees.
async fn agree(client: &Client) -> Result<String, Error> {
    let address = within("beginning", client.begin_sign_in(REDIRECT)).await?;
    let browser = ostler_http::client(ostler_http::Certificates::None).unwrap();
    let browser = browser.redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = browser.get(address).send().await.unwrap();
    Ok(answer.headers()["location"].to_str().unwrap().to_owned())
}

async fn sign_in(client: &Client) -> Result<(), Error> {
    let callback = agree(client).await?;
    within("finishing", client.finish_sign_in(&callback)).await
}

async fn add(client: &Client) -> Result<String, Error> {
    let call = client.call_tool("add", json!({"a": 2, "b": 3}), CallOptions::default());
    within("the call", call).await.map(|output| output.joined_text())
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn a_user_signs_in_once_and_the_token_is_in_a_private_file() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    let folder = home.path().join("tokens");
    let client = place.signed_in(&folder).await;
    assert_eq!(add(&client).await.unwrap(), "5");
    let [file] = files(&folder).try_into().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let text = format!("{client:?} {:?}", client.status());
    assert!(!text.contains("access-1") && !text.contains("quiet-secret"), "{text}");

    // Another program, later.
    let client = place.client(&folder);
    within("connecting", client.reconnect()).await.unwrap();
    assert_eq!(add(&client).await.unwrap(), "5");
    assert_eq!(place.issued().grants, ["authorization_code"]);

    client.sign_out().await.unwrap();
    assert!(files(&folder).is_empty());
    assert!(add(&client).await.unwrap_err().needs_auth());
}

#[tokio::test]
async fn a_token_that_expires_or_is_revoked_is_renewed_without_the_user() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    // Every token is about to expire.
    place.issued().expires_in = 1;
    let client = place.signed_in(home.path()).await;
    assert_eq!(add(&client).await.unwrap(), "5");
    assert!(place.issued().grants.iter().skip(1).all(|grant| grant == "refresh_token"));
    assert!(place.issued().n_tokens > 2);

    place.issued().expires_in = 3600;
    assert_eq!(add(&client).await.unwrap(), "5");
    let before = place.issued().n_tokens;
    place.issued().valid = vec!["none".to_owned()];
    // After a restart, when only the file knows the registration.
    let client = place.client(home.path());
    within("connecting", client.reconnect()).await.unwrap();
    assert_eq!(place.issued().n_tokens, before + 1);
    assert_eq!(place.issued().n_registrations, 1);
}

#[tokio::test]
async fn a_refused_refresh_token_needs_the_user_and_does_not_end_the_connection() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    let client = place.signed_in(home.path()).await;
    assert_eq!(add(&client).await.unwrap(), "5");
    {
        let mut issued = place.issued();
        issued.valid = vec!["none".to_owned()];
        issued.n_tokens += 1;
    }
    let error = add(&client).await.unwrap_err();
    assert!(error.needs_auth(), "{error}");
    assert!(matches!(client.status(), Status::NeedsAuth(_)), "{:?}", client.status());
    // The same connection works again after signing in.
    sign_in(&client).await.unwrap();
    assert_eq!(add(&client).await.unwrap(), "5");
    assert_eq!(client.status(), Status::Connected);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// Mutant: `finish` without `with_subscriber`.
#[tokio::test]
async fn no_code_and_no_token_is_in_the_log_at_any_level() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    place.issued().expires_in = 1;
    let client = place.signed_in(home.path()).await;
    assert_eq!(add(&client).await.unwrap(), "5");
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("rmcp"), "the log has no entries of the library");
    for secret in ["the-code", "access-1", "access-2", "refresh-1", "quiet-secret"] {
        assert!(!text.contains(secret), "{secret} in: {text}");
    }
}

// Mutant: `finish` passes no issuer.
#[tokio::test]
async fn an_answer_of_another_authorization_server_is_refused() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    place.issued().issuer = Some("https://attacker.example".to_owned());
    let client = place.client(home.path());
    within("connecting", client.reconnect()).await.unwrap_err();
    let error = sign_in(&client).await.unwrap_err().to_string();
    assert!(error.contains("attacker.example"), "{error}");
    assert!(place.issued().grants.is_empty(), "no code was sent");
}

// Mutant: every callback gets the state of the last request.
#[tokio::test]
async fn a_code_that_was_stolen_or_injected_is_not_exchanged() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    let victim = place.client(home.path());
    within("connecting", victim.reconnect()).await.unwrap_err();
    let callback = agree(&victim).await.unwrap();

    // The thief has no verifier for this code.
    let other = tempfile::tempdir().unwrap();
    let thief = place.client(other.path());
    within("connecting", thief.reconnect()).await.unwrap_err();
    agree(&thief).await.unwrap();
    thief.finish_sign_in(&callback).await.unwrap_err();
    // An attacker's code with a state that the victim never used.
    let injected = format!("{REDIRECT}?code=the-code&state=forged&iss={}", place.base);
    victim.finish_sign_in(&injected).await.unwrap_err();
    victim.finish_sign_in(&format!("{REDIRECT}?error=access_denied")).await.unwrap_err();
    assert!(place.issued().grants.is_empty(), "no code was sent");
    victim.finish_sign_in(&callback).await.unwrap();
    // A callback counts once.
    victim.finish_sign_in(&callback).await.unwrap_err();
    assert_eq!(place.issued().grants.len(), 1);
}

// Mutant: `safe` accepts every endpoint.
#[tokio::test]
async fn no_code_is_sent_without_tls() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    place.issued().token_endpoint = Some("http://token.example/token".to_owned());
    let client = place.client(home.path());
    within("connecting", client.reconnect()).await.unwrap_err();
    let error = within("beginning", client.begin_sign_in(REDIRECT)).await.unwrap_err().to_string();
    assert!(error.contains("https://"), "{error}");
}

// Mutant: `Store::load` does not compare the URL.
#[tokio::test]
async fn a_token_goes_only_to_the_server_that_it_was_issued_for() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    place.signed_in(home.path()).await;
    let [file] = files(home.path()).try_into().unwrap();
    // A server of the same name at another address, with the file of the first one in its place.
    let other = Place::open().await;
    other.signed_in(home.path()).await;
    let others = files(home.path()).into_iter().find(|path| *path != file).unwrap();
    std::fs::copy(&file, &others).unwrap();
    place.issued().valid = vec!["access-1".to_owned()];
    other.issued().valid = vec!["access-1".to_owned()];
    let client = other.client(home.path());
    let error = within("connecting", client.reconnect()).await.unwrap_err();
    assert!(error.needs_auth(), "{error}");
}

#[tokio::test]
async fn a_configured_token_is_used_instead_of_signing_in() {
    let place = Place::open().await;
    place.issued().valid = vec!["given".to_owned()];
    let headers = [("authorization".to_owned(), "Bearer given".to_owned())].into();
    let remote = Remote { url: format!("{}/mcp", place.base), headers };
    let client = Client::new("far", Endpoint::Http(remote), ClientOptions::default());
    within("connecting", client.reconnect()).await.unwrap();
    assert_eq!(add(&client).await.unwrap(), "5");
    let error = client.begin_sign_in(REDIRECT).await.unwrap_err().to_string();
    assert!(error.contains("`Authorization` header"), "{error}");
    assert!(place.issued().grants.is_empty());
}

#[tokio::test]
async fn the_browser_comes_back_to_a_port_of_this_machine() {
    let (place, home) = (Place::open().await, tempfile::tempdir().unwrap());
    let client = place.client(home.path());
    within("connecting", client.reconnect()).await.unwrap_err();
    let sign_in = within("beginning", client.sign_in()).await.unwrap();
    let (url, port) = (sign_in.url.clone(), sign_in.port());
    assert!(url.contains(&format!("localhost%3A{port}%2Fcallback")), "{url}");
    let browser = async {
        let browser = ostler_http::client(ostler_http::Certificates::None).unwrap();
        let page = browser.build().unwrap().get(url).send().await.unwrap();
        assert!(page.text().await.unwrap().contains("close this window"));
    };
    let (finished, ()) =
        within("signing in", async { tokio::join!(sign_in.finished(), browser) }).await;
    finished.unwrap();
    within("connecting", client.reconnect()).await.unwrap();
    assert_eq!(add(&client).await.unwrap(), "5");
}
