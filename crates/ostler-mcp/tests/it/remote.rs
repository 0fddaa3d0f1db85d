//! Servers over real HTTP on loopback.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event as SseEvent, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt;
use ostler_mcp::{CallOptions, Client, ClientOptions, Connection, Endpoint, Error, Remote, Status};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{calc, within};

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

fn remote(url: String) -> Remote {
    Remote { url, headers: BTreeMap::from([("Authorization".into(), "Bearer sesame".into())]) }
}

async fn connect(endpoint: Endpoint) -> Result<Client, Error> {
    within("connecting", Client::connect("far", endpoint, ClientOptions::default())).await
}

async fn use_it(client: &Client) {
    assert_eq!(client.list_tools().await.unwrap().len(), 6);
    let call = client.call_tool("add", json!({"a": 2, "b": 3}), CallOptions::default());
    assert_eq!(within("the call", call).await.unwrap().joined_text(), "5");
    client.ping().await.unwrap();
}

/// Minimal streamable HTTP: one answer per POST.
async fn answer(State(connection): State<Connection>, headers: HeaderMap, body: Bytes) -> Response {
    if headers.get(header::AUTHORIZATION).is_none_or(|value| value != "Bearer sesame") {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"calc\"")];
        return (StatusCode::UNAUTHORIZED, challenge).into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    if message["params"]["name"] == "boom" {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    // It has no streams, which newer clients need.
    if message["method"] == "server/discover" {
        return StatusCode::BAD_REQUEST.into_response();
    }
    match connection.handle(message).await {
        Some(answer) => {
            ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
        }
        None => StatusCode::ACCEPTED.into_response(),
    }
}

async fn streamable() -> String {
    let router = Router::new().route("/mcp", post(answer)).with_state(calc().connect());
    serve(router).await + "/mcp"
}

#[tokio::test]
async fn a_server_behind_streamable_http_is_used() {
    let client = connect(Endpoint::Http(remote(streamable().await))).await.unwrap();
    assert_eq!(client.details().unwrap().name, "calc");
    use_it(&client).await;
    // One failed POST does not end the connection.
    let call = client.call_tool("boom", json!({}), CallOptions::default());
    let error = within("the call", call).await.unwrap_err();
    assert!(error.to_string().contains("500"), "{error}");
    assert_eq!(client.status(), Status::Connected);
    use_it(&client).await;
    within("closing", client.close()).await;
}

#[tokio::test]
async fn a_server_that_requires_authentication_is_reported_as_such() {
    let anonymous = Remote { url: streamable().await, ..Remote::default() };
    let client = Client::new("far", Endpoint::Http(anonymous), ClientOptions::default());
    let error = within("connecting", client.reconnect()).await.unwrap_err();
    assert!(error.needs_auth() && error.to_string().contains("realm=\"calc\""), "{error}");
    assert_eq!(client.status(), Status::NeedsAuth(error.to_string()));
}

#[tokio::test]
async fn an_address_without_a_server_is_an_error() {
    let error = connect(Endpoint::Http(remote("http://127.0.0.1:1/mcp".into()))).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().to_lowercase().contains("refused"), "{error}");
    for url in ["no address", "ftp://example.com/"] {
        let error = connect(Endpoint::Http(remote(url.to_owned()))).await.unwrap_err();
        assert!(
            matches!(error, Error::Unreachable { .. }) && error.to_string().contains(url),
            "{error}"
        );
    }
    let page = Router::new().route("/", post(|| async { axum::response::Html("<h1>Hello</h1>") }));
    let error = connect(Endpoint::Http(remote(serve(page).await))).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let unsendable =
        Remote { url: streamable().await, headers: [("a b".into(), "c".into())].into() };
    let error = connect(Endpoint::Http(unsendable)).await.unwrap_err();
    assert!(error.to_string().contains("`a b`"), "{error}");
}

#[derive(Clone)]
struct Older {
    connection: Connection,
    events: Arc<Mutex<Option<mpsc::UnboundedSender<SseEvent>>>>,
    target: &'static str,
}

async fn events(State(older): State<Older>, headers: HeaderMap) -> Response {
    if headers.get(header::AUTHORIZATION).is_none_or(|value| value != "Bearer sesame") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let (tell, messages) = mpsc::unbounded_channel();
    tell.send(SseEvent::default().event("endpoint").data(older.target)).unwrap();
    *older.events.lock().unwrap() = Some(tell);
    let stream = futures::stream::unfold(messages, async |mut messages| {
        Some((messages.recv().await?, messages))
    });
    Sse::new(stream.map(Ok::<_, Infallible>)).into_response()
}

async fn message(State(older): State<Older>, body: Bytes) -> StatusCode {
    let message: Value = serde_json::from_slice(&body).unwrap();
    if let Some(answer) = older.connection.handle(message).await {
        let event = SseEvent::default().event("message").data(answer.to_string());
        older.events.lock().unwrap().as_ref().unwrap().send(event).ok();
    }
    StatusCode::ACCEPTED
}

async fn older(target: &'static str) -> (Older, String) {
    let older = Older { connection: calc().connect(), events: Arc::default(), target };
    let routes = Router::new().route("/sse", get(events)).route("/message", post(message));
    let url = serve(routes.with_state(older.clone())).await + "/sse";
    (older, url)
}

#[tokio::test]
async fn a_server_behind_the_older_transport_is_used_until_its_stream_ends() {
    let (older, url) = older("/message?session=7").await;
    let client = connect(Endpoint::Sse(remote(url))).await.unwrap();
    use_it(&client).await;
    let call = client.call_tool("hang", json!({}), CallOptions::default());
    let cut = async {
        older.events.lock().unwrap().take();
    };
    let (error, ()) = within("the end", async { tokio::join!(call, cut) }).await;
    assert!(error.unwrap_err().to_string().contains("the stream of events ended"));
    within("connecting again", client.reconnect()).await.unwrap();
    use_it(&client).await;
}

#[tokio::test]
async fn the_older_transport_sends_headers_to_the_configured_server_only() {
    let (_, url) = older("http://127.0.0.1:1/message").await;
    let error = connect(Endpoint::Sse(remote(url))).await.unwrap_err();
    assert!(error.to_string().contains("another server, http://127.0.0.1:1/message"), "{error}");
    let (_, url) = older("/message").await;
    let error = connect(Endpoint::Sse(Remote { url, ..Remote::default() })).await.unwrap_err();
    assert!(error.needs_auth(), "{error}");
}

/// A body that never ends and keeps sending.
fn endless(status: StatusCode, kind: &'static str) -> Response {
    let bytes =
        futures::stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from(vec![b' '; 64 * 1024])));
    let body = axum::body::Body::from_stream(bytes);
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// Seen to fail if such an answer is read until memory runs out.
#[tokio::test]
async fn an_answer_that_never_ends_is_an_error_at_the_size_limit() {
    for (status, kind) in [
        (StatusCode::OK, "application/json"),
        (StatusCode::OK, "text/event-stream"),
        (StatusCode::BAD_REQUEST, "application/json"),
        (StatusCode::BAD_REQUEST, "text/plain"),
        (StatusCode::INTERNAL_SERVER_ERROR, "application/json"),
    ] {
        let router =
            Router::new().route("/mcp", post(move || async move { endless(status, kind) }));
        let endpoint = Endpoint::Http(remote(serve(router).await + "/mcp"));
        let options = ClientOptions::default().message_limit(1024 * 1024);
        let connecting = Client::connect("far", endpoint, options);
        let error = within("the refusal", connecting).await.unwrap_err().to_string();
        let is_limited = error.contains("larger than 1048576 bytes");
        assert!(is_limited || kind == "text/event-stream", "{status} {kind}: {error}");
    }
}
