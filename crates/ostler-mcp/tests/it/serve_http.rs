//! A server over streamable HTTP: sessions, streams, and clients that mean harm.

use std::net::SocketAddr;
use std::sync::Arc;

use ostler_mcp::{
    CallOptions, Client, ClientOptions, Endpoint, Event, HttpOptions, Remote, Resource, Server,
};
use ostler_proto::control::ElicitationReply;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use crate::asking::shop;
use crate::notices::logging;
use crate::support::{calc, call, request, within};

struct Served {
    url: String,
    address: SocketAddr,
    http: reqwest::Client,
    stop: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn served(server: Server, options: HttpOptions) -> Served {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let ends = stop.clone();
    tokio::spawn(async move { server.serve_http(listener, options, ends).await.unwrap() });
    let http = ostler_http::client(ostler_http::Certificates::None).unwrap();
    let http = http.no_proxy().build().unwrap();
    Served { url: format!("http://{address}/mcp"), address, http, stop }
}

impl Served {
    async fn post(&self, headers: &[(&str, &str)], body: String) -> Response {
        let mut post = self.http.post(&self.url).header("content-type", "application/json");
        for (name, value) in headers {
            post = post.header(*name, *value);
        }
        within("a request", post.body(body).send()).await.unwrap()
    }

    async fn status(&self, headers: &[(&str, &str)], body: String) -> u16 {
        self.post(headers, body).await.status().as_u16()
    }

    /// Begins a session.
    async fn begin(&self) -> Option<String> {
        let answer = self.post(&[], initialize()).await;
        let id = answer.headers().get("mcp-session-id")?.to_str().unwrap().to_owned();
        answer.json::<Value>().await.unwrap();
        Some(id)
    }
}

fn initialize() -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    request(0, "initialize", params).to_string()
}

async fn json_of(response: Response) -> Value {
    within("a body", response.json()).await.unwrap()
}

/// The next message of a stream of events.
async fn event(response: &mut Response, buffer: &mut String) -> Value {
    loop {
        if let Some((event, rest)) = buffer.clone().split_once("\n\n") {
            *buffer = rest.to_owned();
            if let Some(data) = event.lines().find_map(|line| line.strip_prefix("data: ")) {
                return serde_json::from_str(data).unwrap();
            }
            continue;
        }
        let chunk = within("an event", response.chunk()).await.unwrap().expect("an event");
        buffer.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

// Mutant: `end` keeps the session.
#[tokio::test]
async fn a_session_has_an_id_and_ends_when_its_client_says_so() {
    let served = served(calc(), HttpOptions::default()).await;
    let add = || call(1, "add", json!({"a": 2, "b": 3})).to_string();
    assert_eq!(served.status(&[], add()).await, 400, "without a session");
    assert_eq!(served.status(&[("mcp-session-id", "made-up")], add()).await, 404);
    let id = served.begin().await.unwrap();
    let own = [("mcp-session-id", id.as_str())];
    let answer = json_of(served.post(&own, add()).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "5");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(served.status(&own, note).await, 202);
    let end = || served.http.delete(&served.url).header("mcp-session-id", &id).send();
    assert_eq!(end().await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(served.status(&own, add()).await, 404);
    assert_eq!(end().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(served.http.put(&served.url).send().await.unwrap().status(), 405);
    let elsewhere = format!("http://{}/other", served.address);
    assert_eq!(served.http.post(elsewhere).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_question_arrives_on_the_stream_of_its_call_and_is_answered_by_another_request() {
    let served = served(shop(Arc::default()), HttpOptions::default()).await;
    let id = served.begin().await.unwrap();
    let own = [("mcp-session-id", id.as_str())];
    let mut stream = served.post(&own, call(1, "buy", json!({"item": "hat"})).to_string()).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut buffer = String::new();
    for _ in 0..2 {
        let question = event(&mut stream, &mut buffer).await;
        assert_eq!(question["method"], "elicitation/create");
        let answer =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        assert_eq!(served.status(&own, answer.to_string()).await, 202);
    }
    let answer = event(&mut stream, &mut buffer).await;
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["content"][0]["text"], "Declined Declined");
}

#[tokio::test]
async fn changes_arrive_on_the_stream_of_the_session_and_it_has_only_one() {
    let server = calc();
    let served = served(server.clone(), HttpOptions::default()).await;
    let id = served.begin().await.unwrap();
    let open = |id: String| {
        let get = served.http.get(&served.url).header("accept", "text/event-stream");
        get.header("mcp-session-id", id).send()
    };
    let mut stream = within("the stream", open(id.clone())).await.unwrap();
    assert_eq!(stream.status(), 200);
    assert_eq!(within("a second stream", open(id.clone())).await.unwrap().status(), 409);
    assert_eq!(within("no session", open("x".to_owned())).await.unwrap().status(), 404);
    server.remove_tool("boom");
    let changed = event(&mut stream, &mut String::new()).await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(
        served.http.get(&served.url).send().await.unwrap().status(),
        405,
        "without a session"
    );
}

/// Sends a request by hand, and returns the status.
async fn raw(served: &Served, head: &str, body: &str) -> u16 {
    let mut stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let length = body.len();
    let text = format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    within("an answer", stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

// Mutants: the result of `is_own` not looked at; the origin not compared.
#[tokio::test]
async fn a_web_page_cannot_use_the_server_under_a_name_of_its_own() {
    let served = served(calc(), HttpOptions::default()).await;
    let body = initialize();
    let port = served.address.port();
    for (head, expected) in [
        (format!("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}"), 200),
        (
            format!(
                "POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\norigin: http://localhost:{port}"
            ),
            200,
        ),
        ("POST /mcp HTTP/1.1\r\nhost: evil.example".to_owned(), 403),
        (
            format!("POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\norigin: http://evil.example"),
            403,
        ),
        (format!("POST /mcp HTTP/1.1\r\nhost: localhost:{port}\r\norigin: null"), 403),
        ("POST http://evil.example/mcp HTTP/1.1\r\nhost: localhost".to_owned(), 403),
        ("POST /mcp HTTP/1.0".to_owned(), 403),
    ] {
        assert_eq!(raw(&served, &head, &body).await, expected, "{head}");
    }
}

// Mutant: the limit of a body left out.
#[tokio::test]
async fn huge_and_malformed_messages_are_refused() {
    let served = served(calc(), HttpOptions::default().body_limit(1000)).await;
    let large = call(1, "add", json!({"a": "x".repeat(2000)})).to_string();
    assert_eq!(served.status(&[], large).await, 413);
    for body in ["", "{", "nonsense", "{\"a\":}"] {
        let answer = served.post(&[], body.to_owned()).await;
        assert_eq!(answer.status(), 400, "{body}");
        assert_eq!(json_of(answer).await["error"]["code"], -32700);
    }
    let id = served.begin().await.unwrap();
    let own = [("mcp-session-id", id.as_str())];
    for body in ["7", "[]", "{}", "{\"jsonrpc\":\"1.0\"}", &"[".repeat(500)] {
        let answer = served.post(&own, body.to_owned()).await;
        let text = within("a body", answer.text()).await.unwrap();
        assert!(text.contains("-32600") || text.contains("-32700"), "{body}: {text}");
    }
    // It still works.
    let answer = served.post(&own, call(1, "add", json!({"a": 1, "b": 1})).to_string()).await;
    assert_eq!(json_of(answer).await["result"]["content"][0]["text"], "2");
}

// Mutant: `begin` without the limit.
#[tokio::test]
async fn sessions_are_limited_and_those_in_use_are_kept() {
    let served = served(calc(), HttpOptions::default().most_sessions(3)).await;
    let used = served.begin().await.unwrap();
    let get = served.http.get(&served.url).header("accept", "text/event-stream");
    let _stream = within("a stream", get.header("mcp-session-id", &used).send()).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..20 {
        others.push(served.begin().await.unwrap());
    }
    let ping = || request(1, "ping", json!({})).to_string();
    let mut n_alive = 0;
    for id in &others {
        n_alive += usize::from(served.status(&[("mcp-session-id", id)], ping()).await == 200);
    }
    assert_eq!(n_alive, 2);
    assert_eq!(served.status(&[("mcp-session-id", &used)], ping()).await, 200);
}

#[tokio::test]
async fn a_further_session_is_refused_while_all_are_in_use() {
    let served = served(calc(), HttpOptions::default().most_sessions(1)).await;
    let used = served.begin().await.unwrap();
    let get = served.http.get(&served.url).header("accept", "text/event-stream");
    let stream = within("a stream", get.header("mcp-session-id", &used).send()).await.unwrap();
    assert_eq!(served.status(&[], initialize()).await, 503);
    drop(stream);
}

// Mutant: any token or none accepted.
#[tokio::test]
async fn without_the_token_nothing_is_answered() {
    let served = served(calc(), HttpOptions::default().token("secret")).await;
    let answer = served.post(&[], initialize()).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(answer.headers()["www-authenticate"], "Bearer");
    assert_eq!(served.status(&[("authorization", "Bearer guess")], initialize()).await, 401);
    assert_eq!(served.status(&[("authorization", "Bearer secret")], initialize()).await, 200);
    assert_eq!(served.http.get(&served.url).send().await.unwrap().status(), 401);
    assert_eq!(served.http.delete(&served.url).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_a_token() {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    for options in [HttpOptions::default(), HttpOptions::default().token("")] {
        let copy = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
        let refused = calc().serve_http(copy, options, CancellationToken::new()).await;
        assert!(refused.unwrap_err().to_string().contains("need a token"));
    }
    drop(listener);
}

// Mutant: `compare` accepts everything.
#[tokio::test]
async fn without_a_session_the_headers_must_not_contradict_the_message() {
    let served = served(calc(), HttpOptions::default()).await;
    let body = |name: &str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": name, "arguments": {"a": 1, "b": 2}, "_meta": meta});
        request(5, "tools/call", params).to_string()
    };
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    for (headers, expected) in [
        (&[version, method, ("mcp-name", "add")][..], 200),
        (&[version, method, ("mcp-name", "=?base64?YWRk?=")], 200),
        (&[version, method, ("mcp-name", "boom")], 400),
        (&[version, method], 400),
        (&[version, ("mcp-method", "tools/list"), ("mcp-name", "add")], 400),
        (&[("mcp-protocol-version", "2025-11-25"), method, ("mcp-name", "add")], 400),
        (&[method, ("mcp-name", "add")], 400),
    ] {
        let answer = served.post(headers, body("add")).await;
        assert_eq!(answer.status(), expected, "{headers:?}");
        let answer = json_of(answer).await;
        assert_eq!(answer["id"], 5);
        match expected {
            200 => assert_eq!(answer["result"]["content"][0]["text"], "3"),
            _ => assert_eq!(answer["error"]["code"], -32020, "{headers:?}"),
        }
    }
    let unknown = &[version, method, ("mcp-name", "none")];
    assert_eq!(served.status(unknown, body("none")).await, 400);
}

#[tokio::test]
async fn our_own_client_uses_our_own_server_without_a_session_and_answers_its_questions() {
    let served = served(shop(Arc::default()), HttpOptions::default().token("secret")).await;
    let options = ClientOptions::default().on_elicitation(|question| async move {
        let content = Some(json!({"answer": question.message}));
        ElicitationReply { action: "accept".to_owned(), content, ..Default::default() }
    });
    let headers = [("Authorization".to_owned(), "Bearer secret".to_owned())];
    let headers = headers.into_iter().collect();
    let remote = Remote { url: served.url.clone(), headers };
    let connect = Client::connect("shop", Endpoint::Http(remote), options);
    let client = within("connecting", connect).await.unwrap();
    assert_eq!(client.details().unwrap().protocol_version, "2026-07-28");
    let call = client.call_tool("buy", json!({"item": "hat"}), Default::default());
    let output = within("the call", call).await.unwrap();
    let text = output.joined_text();
    assert!(text.contains("Which size of") && text.contains("Which colour?"), "{text}");
    within("closing", client.close()).await;
}

// Mutants: `add` that does not notify; `filter` without the resources; `with_metadata` without the level.
#[tokio::test]
async fn a_client_without_a_session_watches_resources_and_chooses_log_messages() {
    let server = logging().logging().resource(Resource::text("note://a", "a", "milk"));
    let server = server.resource(Resource::text("note://b", "b", "eggs"));
    let served = served(server.clone(), HttpOptions::default()).await;
    let (tell, mut news) = tokio::sync::mpsc::unbounded_channel();
    let options = ClientOptions::default().on_event(move |event| {
        tell.send(event).ok();
    });
    let remote = Remote { url: served.url.clone(), ..Remote::default() };
    let client = Client::connect("s", Endpoint::Http(remote), options);
    let client = within("connecting", client).await.unwrap();
    assert_eq!(client.details().unwrap().protocol_version, "2026-07-28");
    let mut next = async |wanted: &str| loop {
        let event = within(wanted, news.recv()).await.unwrap();
        if let Event::Other { method, params, .. } = event
            && method == wanted
        {
            return params;
        }
    };
    for watched in ["note://a", "note://b"] {
        client.subscribe(watched).await.unwrap();
        // The request is on its way: changes before it arrives are not reported.
        let server = server.clone();
        let changing = tokio::spawn(async move {
            let mut pause = tokio::time::interval(std::time::Duration::from_millis(5));
            loop {
                server.resource_updated(watched);
                pause.tick().await;
            }
        });
        loop {
            let updated = next("notifications/resources/updated").await;
            if updated["uri"] == watched {
                break;
            }
        }
        changing.abort();
    }
    client.set_log_level("warning").await.unwrap();
    let call = client.call_tool("log", json!({}), CallOptions::default());
    within("the call", call).await.unwrap();
    for level in ["warning", "emergency"] {
        assert_eq!(next("notifications/message").await["level"], level);
    }
}
