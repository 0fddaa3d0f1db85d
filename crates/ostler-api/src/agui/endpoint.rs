//! The HTTP routes of AG-UI.

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
use ostler_agui::message::MessageBody;
use ostler_agui::translate::{Settings, Translator};
use ostler_base::error::{ApiError, Fallible};
use ostler_core::app::App;
use ostler_core::config::agui::{Busy, Config};
use ostler_core::model::run::{Session, Setup};
use ostler_door::revocation::Credential;
use ostler_door::token::TokenDigest;
use ostler_door::users::{self, Role};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::client_tool_calls::ThreadToolCalls;
use super::connect;
use super::outlet::Outlet;
use super::run::Run;
use super::thread::{Thread, ThreadLocks};

/// How many events may wait for a slow client.
const BUFFER: usize = 256;

/// The caller, as identified by the guard. A request without a caller is refused. The caller can access only their own
/// threads, whatever their role is elsewhere.
#[derive(Clone)]
pub struct Caller(users::Caller, Option<Credential>);

impl Caller {
    /// A caller with this name.
    pub fn named(name: &str) -> Self {
        let grant = TokenDigest::of(name);
        Self(users::Caller { user: name.to_owned(), role: Role::Member, grant }, None)
    }
}

/// The endpoint. Cheap to clone; clones share the threads.
#[derive(Clone)]
pub struct AgUi(Arc<Inner>);

struct Inner {
    app: App,
    thread_tool_calls: Arc<ThreadToolCalls>,
    thread_locks: ThreadLocks,
    runs: Arc<Semaphore>,
    shutdown: CancellationToken,
}

impl AgUi {
    /// The endpoint of a server. It ends its runs when the token fires.
    pub fn new(
        app: App,
        thread_tool_calls: Arc<ThreadToolCalls>,
        shutdown: CancellationToken,
    ) -> Self {
        let runs = Arc::new(Semaphore::new(app.config.agui.max_runs));
        Self(Arc::new(Inner {
            app,
            thread_tool_calls,
            thread_locks: ThreadLocks::default(),
            runs,
            shutdown,
        }))
    }

    /// The routes behind the server's own guard.
    pub fn guarded(&self) -> Router {
        self.router().layer(axum::middleware::from_fn(name_caller))
    }

    /// The routes, for an application that adds a [`Caller`] to each request.
    pub fn router(&self) -> Router {
        let limit = DefaultBodyLimit::max(self.0.app.config.limits.body);
        Router::new()
            .route("/agui", post(run).options(preflight).layer(limit))
            .route("/agui/connect", post(attach).options(preflight).layer(limit))
            .route("/agui/stop", post(stop).options(preflight))
            .route("/agui/capabilities", get(capabilities).options(preflight))
            .layer(axum::middleware::from_fn_with_state(self.clone(), cors))
            .with_state(self.clone())
    }

    /// How many sessions of the server have an engine.
    pub fn engines(&self) -> usize {
        self.0.app.sessions.working()
    }

    pub(super) fn app(&self) -> &App {
        &self.0.app
    }

    pub(super) fn config(&self) -> &Config {
        &self.0.app.config.agui
    }

    pub(super) fn thread_tool_calls(&self) -> &ThreadToolCalls {
        &self.0.thread_tool_calls
    }

    pub(super) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    /// The session of a thread: the one with this id, or the one that the caller's clients know by this name.
    async fn find(&self, caller: &users::Caller, thread: &str) -> Fallible<Option<Session>> {
        let sessions = &self.0.app.sessions;
        match sessions.find(caller, thread).await {
            Ok(session) => Ok(Some(session)),
            Err(_) => sessions.keyed(&caller.user, thread).await,
        }
    }

    async fn open(&self, caller: &users::Caller, input: &RunAgentInput) -> Fallible<Session> {
        if let Some(session) = self.find(caller, &input.thread_id).await? {
            return Ok(session);
        }
        let said = input.messages.iter().find_map(|message| match &message.body {
            MessageBody::User { content } => Some(content.text()),
            _ => None,
        });
        let title = said.unwrap_or_default();
        let app = &self.0.app;
        app.room_for_session(&caller.user).await?;
        let setup = Setup { cwd: app.config.workspace.clone(), ..Setup::default() };
        let title = title.lines().next().unwrap_or_default();
        app.sessions.by_key(&caller.user, &input.thread_id, title, setup).await
    }
}

impl std::fmt::Debug for AgUi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgUi").field("config", self.config()).finish_non_exhaustive()
    }
}

/// Passes the caller that the guard identified to the endpoint.
async fn name_caller(mut request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    let credential = extensions.get::<Credential>().cloned();
    if let (Some(caller), Some(credential)) = (extensions.get::<users::Caller>(), credential) {
        let caller = users::Caller { role: Role::Member, ..caller.clone() };
        request.extensions_mut().insert(Caller(caller, Some(credential)));
    }
    next.run(request).await
}

fn known(caller: Option<Extension<Caller>>) -> Fallible<Caller> {
    let Some(Extension(caller)) = caller else {
        let words = "this needs a token; send it as `Authorization: Bearer …`";
        return Err(ApiError::unauthenticated(words));
    };
    Ok(caller)
}

fn full() -> ApiError {
    let words = "the maximum number of runs on this server is reached; try again later";
    ApiError::unavailable("too_many_runs", words)
}

fn read(body: &[u8]) -> Fallible<RunAgentInput> {
    let mut input = RunAgentInput::from_json(body)
        .map_err(|error| ApiError::bad_request("invalid_input", error.to_string()))?;
    if let Some(major) = input.foreign_major() {
        let words = format!("this server supports AG-UI 1.x, not {major}.x");
        return Err(ApiError::bad_request("unsupported_version", words));
    }
    // Prompts of others came to the client from this server, so they are not new.
    input.messages.retain(|message| !message.id.starts_with(connect::PROMPT));
    Ok(input)
}

async fn run(
    State(agui): State<AgUi>,
    caller: Option<Extension<Caller>>,
    body: Bytes,
) -> Fallible<Response> {
    let Caller(caller, credential) = known(caller)?;
    let input = read(&body)?;
    let own = agui.0.app.limits.agui_runs.take(&caller.user)?;
    let Ok(permit) = Arc::clone(&agui.0.runs).try_acquire_owned() else { return Err(full()) };
    let session = agui.open(&caller, &input).await?;
    let thread_lock = agui.0.thread_locks.of(&session.id);
    if agui.config().busy == Busy::Refuse && thread_lock.word.try_lock().is_err() {
        let words = "another run on this thread is in progress; wait for it, or stop it";
        return Err(ApiError::conflict("run_in_progress", words));
    }
    let (events, receiver) = mpsc::channel(BUFFER);
    let keep_alive = agui.config().keep_alive;
    let run = Run { agui, session, thread_lock, caller, credential, input };
    // The task outlives this request on purpose: a run continues when its client disconnects.
    tokio::spawn(async move {
        carry(run, events, true).await;
        drop((permit, own));
    });
    Ok(stream(ReceiverStream::new(receiver), keep_alive))
}

/// Sends the conversation of a thread, and its new events.
async fn attach(
    State(agui): State<AgUi>,
    caller: Option<Extension<Caller>>,
    body: Bytes,
) -> Fallible<Response> {
    let Caller(caller, credential) = known(caller)?;
    let mut input = read(&body)?;
    let Some(session) = agui.find(&caller, &input.thread_id).await? else {
        return Err(ostler_base::error::not_found("thread", &input.thread_id));
    };
    let own = agui.0.app.limits.agui_runs.take(&caller.user)?;
    let Ok(permit) = Arc::clone(&agui.0.runs).try_acquire_owned() else { return Err(full()) };
    let thread = Thread::find(&agui.0.app.sessions.records, &session).await?;
    if let (true, Some(thread)) = (input.tools.is_empty(), thread) {
        // The page's own tools have their own names, also for a page that does not know them yet.
        input.tools = thread.page.tools;
    }
    let (events, receiver) = mpsc::channel(BUFFER);
    let keep_alive = agui.config().keep_alive;
    let thread_lock = agui.0.thread_locks.of(&session.id);
    let gone = events.clone();
    let run = Run { agui, session, thread_lock, caller, credential, input };
    tokio::spawn(async move {
        tokio::select! {
            () = carry(run, events, false) => {}
            () = gone.closed() => {}
        }
        drop((permit, own));
    });
    Ok(stream(ReceiverStream::new(receiver), keep_alive))
}

/// Performs a run, or only follows it. The client always receives its end.
async fn carry(run: Run, events: mpsc::Sender<Event>, takes_part: bool) {
    let old_peer = run.input.is_old_peer();
    let settings = Settings::new(&run.input.thread_id, &run.input.run_id);
    let mut outlet = Outlet::new(events.clone(), old_peer);
    let carrying = async {
        match takes_part {
            true => run.carry(&mut outlet).await,
            false => run.connect(&mut outlet).await,
        }
    };
    let carried = AssertUnwindSafe(carrying).catch_unwind().await;
    if carried.is_err() && !outlet.has_ended() {
        let words = "the server failed; see its log for the cause";
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

/// Stops the active run of a thread.
async fn stop(
    State(agui): State<AgUi>,
    caller: Option<Extension<Caller>>,
    Json(input): Json<StopInput>,
) -> Fallible<Response> {
    let Caller(caller, _) = known(caller)?;
    let Some(session) = agui.find(&caller, &input.thread_id).await? else {
        return Ok(Json(json!({"stopped": false})).into_response());
    };
    let mut stopped = agui.0.thread_locks.of(&session.id).stop();
    // A turn that waits is active, although no client follows it just now.
    let sessions = &agui.0.app.sessions;
    if !stopped && let Some(run) = sessions.live_run(&session.id).await? {
        sessions.cancel(&caller, &run.id).await?;
        stopped = true;
    }
    Ok(Json(json!({"stopped": stopped})).into_response())
}

async fn capabilities(caller: Option<Extension<Caller>>) -> Fallible<Response> {
    known(caller)?;
    Ok(Json(json!({
        "identity": {"name": "ostler", "type": "agent", "version": env!("CARGO_PKG_VERSION")},
        "transport": {"streaming": true, "websocket": false, "httpBinary": false, "pushNotifications": false, "resumable": true},
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

/// Answers the preflight request of a browser.
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
        agui.config().origins.iter().any(|known| known.as_bytes() == origin.as_bytes())
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
