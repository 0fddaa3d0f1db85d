//! Servers of MCP 2026-07-28, which have no sessions, and how older ones are recognized.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use ostler_mcp::{
    CallOptions, Channel, Client, ClientOptions, Endpoint, Error, Event, Remote, Status,
};
use ostler_proto::control::ElicitationReply;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::within;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

type Answer = dyn Fn(&Value) -> Result<Value, Value> + Send + Sync;

#[derive(Clone)]
struct Scripted {
    answer: Arc<Answer>,
    /// The requests, with their headers.
    seen: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

impl Scripted {
    fn new(answer: impl Fn(&Value) -> Result<Value, Value> + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), seen: Arc::default() }
    }

    async fn open(&self) -> Remote {
        let router = Router::new().route("/mcp", any(serve)).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Remote { url, ..Remote::default() }
    }

    fn methods(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(_, message)| message["method"].as_str().unwrap().to_owned()).collect()
    }
}

async fn serve(State(scripted): State<Scripted>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    scripted.seen.lock().unwrap().push((headers, message.clone()));
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    match (scripted.answer)(&message) {
        Err(Value::Number(status)) => {
            let status = u16::try_from(status.as_u64().unwrap()).unwrap();
            StatusCode::from_u16(status).unwrap().into_response()
        }
        Err(Value::Null) => std::future::pending().await,
        answer => {
            let mut body = json!({"jsonrpc": "2.0", "id": id});
            let mut status = StatusCode::OK;
            match answer {
                Ok(result) => body["result"] = result,
                Err(mut error) => {
                    // As servers of the official SDK refuse what they have not read.
                    if let Some(refused) = error.as_object_mut().unwrap().remove("without an id") {
                        body["id"] = Value::Null;
                        status = StatusCode::from_u16(refused.as_u64().unwrap() as u16).unwrap();
                    }
                    body["error"] = error;
                }
            }
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (status, kind, body.to_string()).into_response()
        }
    }
}

fn discovered() -> Value {
    json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "odd": [1]},
        "instructions": "Be brief.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "7"}},
    })
}

fn unknown() -> Value {
    json!({"code": -32601, "message": "no such method"})
}

/// Answers `initialize` of the older revisions.
fn begun() -> Value {
    let info = json!({"name": "old", "version": "1"});
    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
}

async fn connect(scripted: &Scripted, options: ClientOptions) -> Result<Client, Error> {
    let endpoint = Endpoint::Http(scripted.open().await);
    within("connecting", Client::connect("s", endpoint, options)).await
}

#[tokio::test]
async fn every_request_carries_what_a_server_without_sessions_must_know() {
    let scripted = Scripted::new(|message| match message["method"].as_str() {
        Some("server/discover") => Ok(discovered()),
        Some("tools/list") => {
            let schema = json!({"type": "object"});
            Ok(json!({"tools": [{"name": "echo", "inputSchema": schema}]}))
        }
        Some("tools/call") => Ok(json!({"content": [{"type": "text", "text": "hi"}]})),
        _ => Err(unknown()),
    });
    let client = connect(&scripted, ClientOptions::default()).await.unwrap();
    let details = client.details().unwrap();
    assert_eq!((details.name.as_str(), details.version.as_str()), ("new", "7"));
    assert_eq!(details.instructions.as_deref(), Some("Be brief."));
    assert_eq!(details.protocol_version, "2026-07-28");
    assert_eq!(client.list_tools().await.unwrap().len(), 1);
    let call = client.call_tool("echo", json!({}), CallOptions::default());
    assert_eq!(within("the call", call).await.unwrap().joined_text(), "hi");
    client.ping().await.unwrap();
    let methods = ["server/discover", "tools/list", "tools/call", "server/discover"];
    assert_eq!(scripted.methods(), methods);
    for (headers, message) in scripted.seen.lock().unwrap().iter() {
        assert_eq!(message["params"]["_meta"][VERSION], "2026-07-28", "{message}");
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28", "{message}");
        assert_eq!(headers["mcp-method"].to_str().unwrap(), message["method"].as_str().unwrap());
    }
}

#[tokio::test]
async fn an_older_server_is_recognized_whatever_it_answers() {
    let odd_answers = [
        Err(unknown()),
        Err(json!({"code": -32000, "message": "Bad Request: Server not initialized"})),
        Err(json!({"code": -32000, "message": "not initialized", "without an id": 400})),
        Err(json!({"code": -32000, "message": "not initialized", "without an id": 200})),
        Err(json!({"code": -32022, "message": "?", "data": {"supported": ["2025-06-18"]}})),
        Ok(json!({})),
        Ok(json!("what?")),
        Ok(json!({"supportedVersions": ["2025-06-18"]})),
        Err(json!(400)),
        Err(json!(404)),
        Err(json!(500)),
    ];
    for odd in odd_answers {
        let answer = odd.clone();
        let scripted = Scripted::new(move |message| match message["method"].as_str() {
            Some("server/discover") => answer.clone(),
            Some("initialize") => Ok(begun()),
            Some("ping") => Ok(json!({})),
            _ => Err(unknown()),
        });
        // No answer of these is waited for until the client loses patience.
        let options = ClientOptions::default().startup_timeout(Duration::from_hours(1));
        let client = connect(&scripted, options).await;
        let client = client.unwrap_or_else(|error| panic!("{odd:?}: {error}"));
        assert_eq!(client.details().unwrap().protocol_version, "2025-06-18", "{odd:?}");
        client.ping().await.unwrap();
        let (_, ping) = scripted.seen.lock().unwrap().last().unwrap().clone();
        assert!(ping["params"]["_meta"].get(VERSION).is_none(), "{ping}");
        // It is not asked again.
        within("connecting again", client.reconnect()).await.unwrap();
        let asked = |method: &&String| *method == "server/discover";
        assert_eq!(scripted.methods().iter().filter(asked).count(), 1, "{odd:?}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_what_it_does_not_know_is_reached() {
    let scripted = Scripted::new(|message| match message["method"].as_str() {
        Some("initialize") => Ok(begun()),
        _ => Err(Value::Null),
    });
    let options = ClientOptions::default().startup_timeout(Duration::from_secs(3));
    let client = connect(&scripted, options).await.unwrap();
    assert_eq!(client.details().unwrap().name, "old");
}

#[tokio::test]
async fn a_server_that_refuses_both_handshakes_says_why_twice() {
    let scripted = Scripted::new(|message| match message["method"].as_str() {
        Some("server/discover") => Err(json!({"code": -32021, "message": "needs sampling"})),
        _ => Err(unknown()),
    });
    let error = connect(&scripted, ClientOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("no such method") && error.contains("needs sampling"), "{error}");
}

/// A tool that asks a question as often as `rounds` says.
fn asking(rounds: usize, question: Value) -> Scripted {
    let n_rounds = Mutex::new(0);
    Scripted::new(move |message| match message["method"].as_str() {
        Some("server/discover") => Ok(discovered()),
        Some("tools/call") => {
            let mut n_rounds = n_rounds.lock().unwrap();
            *n_rounds += 1;
            if *n_rounds > rounds {
                let text = message["params"]["inputResponses"].to_string();
                return Ok(json!({"content": [{"type": "text", "text": text}]}));
            }
            Ok(json!({
                "resultType": "input_required", "requestState": format!("round {n_rounds}"),
                "inputRequests": {"q": question},
            }))
        }
        _ => Err(unknown()),
    })
}

fn accepting() -> ClientOptions {
    ClientOptions::default().on_elicitation(|question| async move {
        let content = Some(json!({"heard": question.message}));
        ElicitationReply { action: "accept".to_owned(), content, ..Default::default() }
    })
}

#[tokio::test]
async fn questions_in_a_result_are_answered_and_the_request_is_repeated() {
    let question = json!({"method": "elicitation/create", "params": {"message": "Sure?"}});
    let scripted = asking(2, question);
    let client = connect(&scripted, accepting()).await.unwrap();
    let call = client.call_tool("ask", json!({"a": 1}), CallOptions::default());
    let output = within("the call", call).await.unwrap().joined_text();
    let answer = json!({"q": {"action": "accept", "content": {"heard": "Sure?"}}});
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), answer);
    let seen = scripted.seen.lock().unwrap().clone();
    let calls: Vec<_> = seen.iter().filter(|(_, it)| it["method"] == "tools/call").collect();
    let states: Vec<_> = calls.iter().map(|(_, it)| it["params"]["requestState"].clone()).collect();
    assert_eq!(states, [Value::Null, json!("round 1"), json!("round 2")]);
    assert!(calls.iter().all(|(_, it)| it["params"]["arguments"] == json!({"a": 1})));
    assert_ne!(calls[0].1["id"], calls[1].1["id"]);
}

#[tokio::test]
async fn endless_questions_and_questions_of_an_unknown_kind_end_the_call() {
    let question = json!({"method": "elicitation/create", "params": {"message": "Again?"}});
    for (question, expected) in [
        (question, "more input 10 times"),
        (json!({"method": "sampling/createMessage", "params": {}}), "`sampling/createMessage`"),
    ] {
        let client = connect(&asking(usize::MAX, question), accepting()).await.unwrap();
        let call = client.call_tool("ask", json!({}), CallOptions::default());
        let error = within("the call", call).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(client.status(), Status::Connected);
    }
}

/// A server of this program that knows only the newest revision.
fn newest_only() -> Endpoint {
    Endpoint::custom(|| {
        let (ours, mut theirs) = Channel::pair(8);
        tokio::spawn(async move {
            while let Some(message) = theirs.incoming.recv().await {
                let id = message["id"].clone();
                let answer = match message["method"].as_str() {
                    Some("server/discover") => {
                        let mut discovered = discovered();
                        discovered["capabilities"] = json!({"tools": {"listChanged": true}});
                        json!({"jsonrpc": "2.0", "id": id, "result": discovered})
                    }
                    Some("subscriptions/listen") => {
                        assert_eq!(
                            message["params"]["notifications"],
                            json!({"toolsListChanged": true})
                        );
                        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                    }
                    _ => json!({"jsonrpc": "2.0", "id": id, "error": unknown()}),
                };
                theirs.outgoing.send(answer).await.ok();
            }
        });
        ours
    })
}

#[tokio::test]
async fn a_server_without_url_that_knows_only_the_newest_revision_is_reached_and_reports_changes() {
    let (tell, mut news) = mpsc::unbounded_channel();
    let options = ClientOptions::default().on_event(move |event| {
        tell.send(event).ok();
    });
    let client = within("connecting", Client::connect("s", newest_only(), options)).await.unwrap();
    assert_eq!(client.details().unwrap().protocol_version, "2026-07-28");
    assert_eq!(within("news", news.recv()).await, Some(Event::ToolsChanged));
}
