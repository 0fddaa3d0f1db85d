//! What servers ask of the client besides answers: folders, visits to addresses, more time, and patience when they are
//! down.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use ostler_mcp::{
    CallOptions, Channel, Client, ClientOptions, Endpoint, Error, Event, Remote, Root, Status,
};
use ostler_proto::control::ElicitationReply;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::{played, result};
use crate::support::within;

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "done"}]})
}

async fn call(client: &Client, options: CallOptions) -> Result<String, Error> {
    let called = client.call_tool("t", json!({}), options);
    within("the call", called).await.map(|output| output.joined_text())
}

// Mutants: `capabilities` without roots; `roots_changed` that sends nothing.
#[tokio::test]
async fn a_server_gets_the_folders_it_may_work_in_and_is_told_of_changes() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let endpoint = Endpoint::custom(move || {
        let (ours, mut theirs) = Channel::pair(8);
        let tell = tell.clone();
        tokio::spawn(async move {
            while let Some(message) = theirs.incoming.recv().await {
                if message["method"] == "initialize" {
                    let answer = json!({
                        "protocolVersion": "2025-11-25", "capabilities": {},
                        "serverInfo": {"name": "s", "version": "1"},
                    });
                    theirs.outgoing.send(result(&message, answer).remove(0)).await.ok();
                }
                if message["method"] == "notifications/roots/list_changed" {
                    let ask = json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"});
                    theirs.outgoing.send(ask).await.ok();
                }
                tell.send(message).ok();
            }
        });
        ours
    });
    let options = ClientOptions::default().roots(|| {
        vec![Root::folder(Path::new("/work/a b")), Root { uri: "file:///x".into(), name: None }]
    });
    let client = Client::connect("s", endpoint, options).await.unwrap();
    let mut next = async || within("a message", told.recv()).await.unwrap();
    let hello = next().await;
    assert_eq!(hello["params"]["capabilities"], json!({"roots": {"listChanged": true}}));
    assert_eq!(next().await["method"], "notifications/initialized");
    client.roots_changed();
    assert_eq!(next().await["method"], "notifications/roots/list_changed");
    let roots = json!([{"uri": "file:///work/a%20b", "name": "a b"}, {"uri": "file:///x"}]);
    assert_eq!(next().await["result"], json!({"roots": roots}));
}

// Mutant: `answers` that knows elicitation only.
#[tokio::test]
async fn a_server_without_sessions_asks_for_the_folders_in_a_result() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&seen);
    let endpoint = Endpoint::custom(move || {
        let (ours, mut theirs) = Channel::pair(8);
        let requests = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Some(message) = theirs.incoming.recv().await {
                requests.lock().unwrap().push(message.clone());
                let id = message["id"].clone();
                let answer = match message["method"].as_str() {
                    Some("initialize") => {
                        let error = json!({"code": -32601, "message": "no sessions"});
                        json!({"jsonrpc": "2.0", "id": id, "error": error})
                    }
                    Some("server/discover") => {
                        let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
                        result(&message, found).remove(0)
                    }
                    _ if message["params"].get("inputResponses").is_none() => {
                        let questions = json!({"q": {"method": "roots/list", "params": {}}});
                        let more =
                            json!({"resultType": "input_required", "inputRequests": questions});
                        result(&message, more).remove(0)
                    }
                    _ => result(&message, done()).remove(0),
                };
                theirs.outgoing.send(answer).await.ok();
            }
        });
        ours
    });
    let options = ClientOptions::default().roots(|| vec![Root::folder(Path::new("/work"))]);
    let client = Client::connect("s", endpoint, options).await.unwrap();
    assert_eq!(call(&client, CallOptions::default()).await.unwrap(), "done");
    // It has no session to send a notification in.
    client.roots_changed();
    client.ping().await.unwrap();
    let seen = seen.lock().unwrap();
    let key = "io.modelcontextprotocol/clientCapabilities";
    assert_eq!(seen[1]["params"]["_meta"][key], json!({"roots": {}}));
    let answer = json!({"q": {"roots": [{"uri": "file:///work", "name": "work"}]}});
    assert_eq!(seen[3]["params"]["inputResponses"], answer);
    assert!(seen.iter().all(|message| message["method"] != "notifications/roots/list_changed"));
}

/// A server that wants the user to visit an address before it does anything.
async fn visited(
    action: Option<&'static str>,
    n_refusals: usize,
) -> (Result<String, Error>, usize) {
    let n_calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_calls);
    let endpoint = played(move |message| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        if count.fetch_add(1, Ordering::SeqCst) < n_refusals {
            let visit = json!({"mode": "url", "url": "https://shop.example", "elicitationId": "e", "message": "Pay"});
            let data = json!({"elicitations": [visit]});
            let error =
                json!({"code": -32042, "message": "Visit https://shop.example", "data": data});
            return vec![json!({"jsonrpc": "2.0", "id": message["id"], "error": error})];
        }
        result(message, done())
    });
    let mut options = ClientOptions::default();
    if let Some(action) = action {
        options = options.on_elicitation(move |question| async move {
            assert_eq!(question.url.as_deref(), Some("https://shop.example"));
            assert_eq!(question.mode.as_deref(), Some("url"));
            ElicitationReply { action: action.to_owned(), ..Default::default() }
        });
    }
    let client = Client::connect("shop", endpoint, options).await.unwrap();
    let outcome = call(&client, CallOptions::default()).await;
    (outcome, n_calls.load(Ordering::SeqCst))
}

// Mutant: `request_with_visits` that repeats the call whatever the user answers.
#[tokio::test]
async fn a_call_that_needs_a_visit_is_repeated_once_after_the_user_agreed() {
    let (outcome, n_calls) = visited(Some("accept"), 1).await;
    assert_eq!((outcome.unwrap().as_str(), n_calls), ("done", 2));
    for (action, n_refusals, expected) in
        [(Some("accept"), 9, 2), (Some("decline"), 1, 1), (Some("cancel"), 1, 1), (None, 1, 1)]
    {
        let (outcome, n_calls) = visited(action, n_refusals).await;
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Refused { code: -32042, .. }), "{action:?}: {error}");
        assert_eq!(n_calls, expected, "{action:?}");
    }
}

/// A server that reports progress three times, eight seconds apart, and then answers.
fn slow() -> Endpoint {
    Endpoint::custom(|| {
        let (ours, mut theirs) = Channel::pair(8);
        tokio::spawn(async move {
            while let Some(message) = theirs.incoming.recv().await {
                if message["method"] == "initialize" {
                    let info = json!({"name": "slow", "version": "1"});
                    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info});
                    theirs.outgoing.send(result(&message, hello).remove(0)).await.ok();
                } else if message["method"] == "tools/call" {
                    for progress in 1..=3 {
                        tokio::time::sleep(Duration::from_secs(8)).await;
                        let token = &message["params"]["_meta"]["progressToken"];
                        let params = json!({"progressToken": token, "progress": progress});
                        let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
                        theirs.outgoing.send(report).await.ok();
                    }
                    tokio::time::sleep(Duration::from_secs(8)).await;
                    theirs.outgoing.send(result(&message, done()).remove(0)).await.ok();
                }
            }
        });
        ours
    })
}

// Mutants: `progressed` that does not notify; `timeout` without the limit for the whole.
#[tokio::test(start_paused = true)]
async fn progress_extends_the_timeout_of_a_call_up_to_a_limit() {
    let seconds = Duration::from_secs;
    let limit = CallOptions::default().timeout(seconds(10));
    for (options, expected) in [
        (limit.clone().extended_by_progress(seconds(100)), None),
        (limit.clone().extended_by_progress(seconds(15)), Some(15)),
        (limit.clone().extended_by_progress(Duration::MAX), None),
        (limit, Some(10)),
        (CallOptions::default(), None),
    ] {
        let client = Client::connect("slow", slow(), ClientOptions::default()).await.unwrap();
        let begun = tokio::time::Instant::now();
        let outcome = call(&client, options.clone()).await;
        match expected {
            None => assert_eq!(outcome.unwrap(), "done", "{options:?}"),
            Some(after) => {
                let error = outcome.unwrap_err();
                assert!(error.to_string().ends_with(&format!("after {after}s")), "{error}");
                // The clock of the test stands still between events.
                assert_eq!(begun.elapsed().as_secs(), after, "{error}");
            }
        }
    }
}

// Mutant: `pages` that does not count bytes.
#[tokio::test]
async fn a_list_whose_pages_never_end_is_refused_at_a_size() {
    let n_pages = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&n_pages);
    let endpoint = played(move |message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        let page = count.fetch_add(1, Ordering::SeqCst);
        let tool = json!({"name": "x".repeat(900), "inputSchema": {"type": "object"}});
        result(message, json!({"tools": [tool], "nextCursor": format!("page {page}")}))
    });
    let options = ClientOptions::default().message_limit(10_000);
    let client = Client::connect("pages", endpoint, options).await.unwrap();
    let error = within("the list", client.list_tools()).await.unwrap_err().to_string();
    assert!(error.contains("larger than 20000 bytes"), "{error}");
    assert!(n_pages.load(Ordering::SeqCst) < 30);
}

async fn answer(body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = match message["method"].as_str() {
        Some("server/discover") => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        }
        _ => done(),
    };
    let answer = result(&message, answer).remove(0);
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

async fn serve(address: &str) -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = Router::new().route("/", post(answer));
    (address, tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }))
}

// Mutant: `undelivered` without the event.
#[tokio::test]
async fn a_server_over_http_that_is_gone_is_reported_until_it_answers_again() {
    let (address, server) = serve("127.0.0.1:0").await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let options = ClientOptions::default().on_event(move |event| _ = tell.send(event));
    let remote = Remote { url: format!("http://{address}/"), ..Remote::default() };
    let client = within("connecting", Client::connect("far", Endpoint::Http(remote), options));
    let client = client.await.unwrap();
    assert_eq!(call(&client, CallOptions::default()).await.unwrap(), "done");
    server.abort();
    server.await.unwrap_err();
    let error = call(&client, CallOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert_eq!(client.status(), Status::Failed(error.to_string()));
    assert_eq!(within("the event", told.recv()).await, Some(Event::Unreachable(error)));
    let (_, _server) = serve(&address).await;
    assert_eq!(call(&client, CallOptions::default()).await.unwrap(), "done");
    assert_eq!(client.status(), Status::Connected);
}
