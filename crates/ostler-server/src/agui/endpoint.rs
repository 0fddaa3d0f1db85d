//! What HTTP sees of AG-UI.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, CACHE_CONTROL, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{FutureExt as _, Stream, StreamExt as _};
use ostler_agui::event::Event;
use ostler_agui::input::RunAgentInput;
use ostler_agui::translate::{Settings, Translator};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::config::{Busy, Config};
use super::outlet::Outlet;
use super::run::Run;
use super::thread::{Key, Threads};

/// Events that may wait for a slow client.
const BUFFER: usize = 256;
/// How often threads that rest are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// Who calls, as whoever let the request in says. Without it a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(pub String);

/// The endpoint. Cheap to clone; clones share the threads.
#[derive(Clone, Debug)]
pub struct AgUi(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Arc<Config>,
    threads: Threads,
    runs: Arc<Semaphore>,
    shutdown: CancellationToken,
}

impl AgUi {
    /// An endpoint without threads. It ends its runs when the token fires.
    pub fn new(config: Config, shutdown: CancellationToken) -> Self {
        let runs = Arc::new(Semaphore::new(config.max_runs));
        let config = Arc::new(config);
        Self(Arc::new(Inner { config, threads: Threads::default(), runs, shutdown }))
    }

    /// The routes, for whoever puts a [`Caller`] on each request.
    pub fn router(&self) -> Router {
        let limit = DefaultBodyLimit::max(self.0.config.max_body);
        Router::new()
            .route("/agui", post(run).options(preflight).layer(limit))
            .route("/agui/stop", post(stop).options(preflight))
            .route("/agui/capabilities", get(capabilities).options(preflight))
            .layer(axum::middleware::from_fn_with_state(self.clone(), cors))
            .with_state(self.clone())
    }

    /// Forgets threads that have rested too long, again and again, until the server ends.
    pub async fn keep_house(&self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(SWEEP) => self.sweep(),
                () = self.0.shutdown.cancelled() => return,
            }
        }
    }

    /// Forgets threads that have rested too long.
    pub fn sweep(&self) {
        self.0.threads.sweep(&self.0.config);
    }

    /// How many threads are remembered.
    pub fn threads(&self) -> usize {
        self.0.threads.len()
    }

    fn key(&self, caller: &Caller, thread: &str) -> Key {
        Key { caller: caller.0.clone(), thread: thread.to_owned() }
    }
}

/// A request that is refused before anything runs.
struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refused {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = json!({"error": {"code": self.code, "message": self.message}});
        (self.status, Json(body)).into_response()
    }
}

fn known(caller: Option<Extension<Caller>>) -> Result<Caller, Refused> {
    let Some(Extension(caller)) = caller else {
        let words = "this needs a token; send it as `Authorization: Bearer …`";
        return Err(Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", words));
    };
    Ok(caller)
}

async fn run(
    State(agui): State<AgUi>,
    caller: Option<Extension<Caller>>,
    body: Bytes,
) -> Result<Response, Refused> {
    let caller = known(caller)?;
    let input = RunAgentInput::from_json(&body).map_err(|error| {
        Refused::new(StatusCode::BAD_REQUEST, "invalid_input", error.to_string())
    })?;
    if let Some(major) = input.foreign_major() {
        let words = format!("this server speaks AG-UI 1.x, not {major}.x");
        return Err(Refused::new(StatusCode::BAD_REQUEST, "unsupported_version", words));
    }
    let Ok(permit) = Arc::clone(&agui.0.runs).try_acquire_owned() else {
        let words = "as many runs as this server allows are going on; try again later";
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_runs", words));
    };
    let thread = agui.0.threads.open(&agui.key(&caller, &input.thread_id), &agui.0.config);
    if agui.0.config.busy == Busy::Refuse && thread.work.try_lock().is_err() {
        let words = "another run on this thread goes on; wait for it, or stop it";
        return Err(Refused::new(StatusCode::CONFLICT, "run_in_progress", words));
    }
    let (events, receiver) = mpsc::channel(BUFFER);
    let run = Run {
        config: Arc::clone(&agui.0.config),
        thread,
        caller: caller.0,
        input,
        shutdown: agui.0.shutdown.clone(),
    };
    // It outlives this request on purpose: a client that goes does not take its run along.
    tokio::spawn(async move {
        carry(run, events).await;
        drop(permit);
    });
    Ok(stream(ReceiverStream::new(receiver), agui.0.config.keep_alive))
}

/// Carries a run; whatever happens, the client hears of its end.
async fn carry(run: Run, events: mpsc::Sender<Event>) {
    let old_peer = run.input.is_old_peer();
    let settings = Settings::new(&run.input.thread_id, &run.input.run_id);
    let mut outlet = Outlet::new(events.clone(), old_peer);
    let carried = AssertUnwindSafe(run.carry(&mut outlet)).catch_unwind().await;
    if carried.is_err() && !outlet.has_ended() {
        let words = "the server made a mistake; its log says more";
        let end = Translator::new(settings).fail(words, "internal_error");
        for event in end {
            events.send(event).await.ok();
        }
    }
}

fn stream(events: impl Stream<Item = Event> + Send + 'static, keep_alive: Duration) -> Response {
    let frames = events.map(|event| {
        Ok::<_, Infallible>(axum::response::sse::Event::default().data(event.to_json()))
    });
    let alive = KeepAlive::new().interval(keep_alive).text("keep-alive");
    let mut response = Sse::new(frames).keep_alive(alive).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StopInput {
    thread_id: String,
}

/// Stops what goes on in a thread.
async fn stop(
    State(agui): State<AgUi>,
    caller: Option<Extension<Caller>>,
    Json(input): Json<StopInput>,
) -> Result<Response, Refused> {
    let caller = known(caller)?;
    let thread = agui.0.threads.find(&agui.key(&caller, &input.thread_id));
    let stopped = thread.is_some_and(|thread| thread.stop());
    Ok(Json(json!({"stopped": stopped})).into_response())
}

async fn capabilities(caller: Option<Extension<Caller>>) -> Result<Response, Refused> {
    known(caller)?;
    Ok(Json(json!({
        "identity": {"name": "ostler", "type": "agent", "version": env!("CARGO_PKG_VERSION")},
        "transport": {"streaming": true, "websocket": false, "httpBinary": false, "pushNotifications": false, "resumable": false},
        "tools": {"supported": true, "parallelCalls": true, "clientProvided": true},
        "output": {"structuredOutput": true},
        "state": {"snapshots": true, "deltas": true, "memory": true, "persistentState": true},
        "multiAgent": {"supported": true, "delegation": true, "handoffs": false},
        "reasoning": {"supported": true, "streaming": true, "encrypted": true},
        "multimodal": {"input": {"image": true, "audio": false, "video": false, "pdf": true, "file": true}},
        "humanInTheLoop": {"supported": true, "approvals": true, "interventions": true, "feedback": true, "interrupts": true, "approveWithEdits": true},
    }))
    .into_response())
}

/// What a browser asks before it lets a page call.
async fn preflight() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Lets pages of known origins call from a browser.
async fn cors(State(agui): State<AgUi>, request: Request, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    let origin = request.headers().get(ORIGIN).cloned();
    let asked = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let mut response = next.run(request).await;
    let allowed = origin.filter(|origin| {
        agui.0.config.origins.iter().any(|known| known.as_bytes() == origin.as_bytes())
    });
    if let Some(origin) = allowed {
        allow(response.headers_mut(), origin, asked.filter(|_| is_preflight));
    }
    response
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue, asked: Option<HeaderValue>) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(VARY, HeaderValue::from_static("origin"));
    if let Some(asked) = asked {
        headers
            .insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, OPTIONS"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
}
