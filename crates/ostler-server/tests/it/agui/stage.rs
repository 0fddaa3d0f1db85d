//! A server with a scripted model, and a client that reads events.

use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::Next;
use futures::StreamExt as _;
use ostler_agui::event::{Body, Event};
use ostler_agui::verify::Verifier;
use ostler_server::Server;
use ostler_server::agui::{AgUi, Caller};
use ostler_server::config::Config;
use ostler_testkit::{Script, ScriptedApi};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// How long a test waits for something that should happen at once.
const WAIT: Duration = Duration::from_secs(20);

pub(crate) struct Stage {
    pub(crate) api: ScriptedApi,
    pub(crate) agui: AgUi,
    pub(crate) url: String,
    pub(crate) shutdown: CancellationToken,
    pub(crate) home: TempDir,
    _data: TempDir,
    client: reqwest::Client,
}

/// The configuration of a server for tests.
pub(crate) fn config(api: &str, home: &Path, data: &Path) -> Config {
    let mut config = Config::new(data.join("data"), home);
    config.listen.set_port(0);
    config.model = Some("claude-sonnet-4-5".to_owned());
    config.limits.max_turns = Some(20);
    for (name, value) in [
        ("HOME", data.display().to_string()),
        ("ANTHROPIC_BASE_URL", api.to_owned()),
        ("ANTHROPIC_API_KEY", "test".to_owned()),
    ] {
        config.env.insert(name.to_owned(), value);
    }
    config
}

/// Starts a server, which ends with the token. Its endpoint is also served on another port, where the token is the
/// caller's name.
pub(crate) async fn start(config: Config, stopping: CancellationToken) -> (AgUi, String) {
    let server = Server::start(config).await.unwrap();
    let agui = server.agui();
    tokio::spawn(server.serve(async move { stopping.cancelled().await }));
    let url = serve(agui.router()).await;
    (agui, url)
}

impl Stage {
    pub(crate) async fn new(script: Script) -> Self {
        Self::with(script, |_| {}).await
    }

    pub(crate) async fn with(script: Script, change: fn(&mut Config)) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let api = ScriptedApi::start(script).await;
        let (home, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut config = config(&api.base_url(), home.path(), data.path());
        change(&mut config);
        let shutdown = CancellationToken::new();
        let (agui, url) = start(config, shutdown.clone()).await;
        // Reading the system's certificates takes longer than most requests of a test.
        let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        Self { api, agui, url, shutdown, home, _data: data, client }
    }

    /// Sends a request for a run as a caller.
    pub(crate) async fn post(&self, caller: &str, body: &Value) -> reqwest::Response {
        let request = self.client.post(format!("{}/agui", self.url)).bearer_auth(caller);
        request.json(body).send().await.unwrap()
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Begins a run whose events are read one by one.
    pub(crate) async fn begin(&self, body: &Value) -> Events {
        self.begin_as("ann", body).await
    }

    pub(crate) async fn begin_as(&self, caller: &str, body: &Value) -> Events {
        let response = self.post(caller, body).await;
        let status = response.status();
        assert!(status.is_success(), "{status}: {}", response.text().await.unwrap());
        Events::new(response)
    }

    /// Runs to the end.
    pub(crate) async fn run(&self, body: &Value) -> Vec<Event> {
        self.begin(body).await.rest().await
    }

    /// Waits until exactly this many sessions have an engine.
    pub(crate) async fn rests(&self, engines: usize) {
        let resting = async {
            while self.agui.engines() != engines {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WAIT, resting).await.expect("engines end");
    }

    pub(crate) async fn stop(&self, thread: &str) -> Value {
        let request = self.client.post(format!("{}/agui/stop", self.url)).bearer_auth("ann");
        let response = request.json(&json!({"threadId": thread})).send().await.unwrap();
        response.json().await.unwrap()
    }
}

/// Serves routes on a free port. The token is the caller's name.
pub(crate) async fn serve(router: Router) -> String {
    async fn guard(mut request: Request, next: Next) -> axum::response::Response {
        let token = request.headers().get("authorization").and_then(|it| it.to_str().ok());
        if let Some(name) = token.and_then(|it| it.strip_prefix("Bearer ")) {
            let caller = Caller::named(name);
            request.extensions_mut().insert(caller);
        }
        next.run(request).await
    }
    let router = router.layer(axum::middleware::from_fn(guard));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

/// The events of a run, as they arrive.
pub(crate) struct Events {
    body: futures::stream::BoxStream<'static, Vec<u8>>,
    buffer: Vec<u8>,
    verifier: Verifier,
}

impl Events {
    pub(crate) fn new(response: reqwest::Response) -> Self {
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        let body = response.bytes_stream().map(|piece| piece.unwrap().to_vec()).boxed();
        Self { body, buffer: Vec::new(), verifier: Verifier::default() }
    }

    /// The data of the next frame; skips comments. `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let frame = String::from_utf8(frame).unwrap();
                assert!(!frame.contains('\r'), "{frame:?}");
                if frame.starts_with(':') {
                    continue;
                }
                let data = frame.strip_prefix("data: ").unwrap().trim_end();
                let event: Event = serde_json::from_str(data).unwrap();
                assert_eq!(event.to_json(), data, "the event has undeclared fields");
                self.verifier.check(&event).unwrap();
                return Some(event);
            }
            let piece =
                tokio::time::timeout(WAIT, self.body.next()).await.expect("an event in time");
            match piece {
                Some(piece) => self.buffer.extend(piece),
                None => return None,
            }
        }
    }

    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        self.verifier.finish().unwrap();
        assert_eq!(events.iter().filter(|event| event.is_terminal()).count(), 1, "{events:#?}");
        events
    }

    /// Reads up to the first event that matches.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Event) -> bool) -> Event {
        while let Some(event) = self.next().await {
            if fits(&event) {
                return event;
            }
        }
        panic!("the stream ended before such an event");
    }
}

// --- requests

pub(crate) fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

pub(crate) fn reply(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "assistant", "content": text})
}

pub(crate) fn answer(id: &str, call: &str, content: Value) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": call, "content": content})
}

/// A run on the thread `t`, by a client of 1.0.
pub(crate) fn input(run: &str, messages: &[Value]) -> Value {
    json!({"threadId": "t", "runId": run, "messages": messages, "protocolVersion": "1.0",
        "tools": [], "context": [], "forwardedProps": {}})
}

pub(crate) fn with(mut input: Value, name: &str, value: Value) -> Value {
    input[name] = value;
    input
}

pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name}"), "parameters": {"type": "object", "properties": {}}})
}

// --- events

pub(crate) fn kinds(events: &[Event]) -> Vec<String> {
    let kind =
        |event: &Event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
    events.iter().map(kind).collect()
}

pub(crate) fn text_of(events: &[Event]) -> String {
    events
        .iter()
        .filter_map(|event| match &event.body {
            Body::TextMessageContent { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect()
}

/// The last event, as JSON.
pub(crate) fn end_of(events: &[Event]) -> Value {
    serde_json::to_value(events.last().unwrap()).unwrap()
}

pub(crate) fn outcome(events: &[Event]) -> String {
    let end = end_of(events);
    match end["type"].as_str().unwrap() {
        "RUN_FINISHED" => end["outcome"]["type"].as_str().unwrap().to_owned(),
        _ => {
            format!("error {}: {}", end["code"].as_str().unwrap(), end["message"].as_str().unwrap())
        }
    }
}

/// The calls, by id, name and arguments.
pub(crate) fn calls(events: &[Event]) -> Vec<(String, String, String)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for event in events {
        match &event.body {
            Body::ToolCallStart { tool_call_id, tool_call_name, .. } => {
                calls.push((tool_call_id.clone(), tool_call_name.clone(), String::new()));
            }
            Body::ToolCallArgs { tool_call_id, delta } => {
                calls.iter_mut().find(|call| call.0 == *tool_call_id).unwrap().2.push_str(delta);
            }
            _ => {}
        }
    }
    calls
}

/// The results, by call.
pub(crate) fn results(events: &[Event]) -> Vec<(String, String)> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolCallResult { tool_call_id, content, .. } => {
                Some((tool_call_id.clone(), content.text()))
            }
            _ => None,
        })
        .collect()
}

pub(crate) fn pending(events: &[Event]) -> Value {
    end_of(events)["outcome"]["pendingToolCallIds"].clone()
}

pub(crate) fn interrupts(events: &[Event]) -> Vec<Value> {
    end_of(events)["outcome"]["interrupts"].as_array().cloned().unwrap_or_default()
}
