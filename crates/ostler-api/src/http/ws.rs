//! The WebSocket: one connection for everything a page needs.
//!
//! A client that connects first receives the pending requests and the active runs; then new and decided requests,
//! starts and ends of runs, and all events of the sessions to which it subscribes. It sends prompts and answers on the
//! same connection. See [`super::spoken`] for the messages.
//!
//! Each message is checked like a request: its caller must still be signed in, and it takes one unit out of the
//! caller's request bucket. A caller who is signed out gets the close code [`SIGNED_OUT`]. Messages have at most 1 MiB,
//! and 64 KiB unless they are prompts, answers to questions or changed arguments; a larger one closes the connection
//! with 1009 and a reason.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures::stream::{FuturesUnordered, SplitSink};
use futures::{SinkExt as _, StreamExt as _};
use ostler_base::error::{ApiError, Fallible, Object};
use ostler_core::app::App;
use ostler_core::approvals::record::Approval;
use ostler_core::log::{Logged, Reader};
use ostler_core::log_writers;
use ostler_core::metrics::Gauged;
use ostler_core::model::run::{Run, Setup};
use ostler_core::runs::NewRun;
use ostler_door::guard::SOCKET;
use ostler_door::revocation::Credential;
use ostler_door::users::Caller;
use ostler_store::{Filter, Page};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::listing::{MOST, seen_by};
use super::names::NamesUsers as _;
use super::spoken::{self, Said};

/// The size limit of a client's message, in bytes. Longer prompts are sent by REST.
const LARGEST: usize = 1 << 20;
/// The size limit of a message that is neither a prompt nor an answer with changed arguments, in bytes.
const SMALL: usize = 64 << 10;
/// The reason for a client that sends more than [`LARGEST`].
const TOO_LARGE: &str =
    "messages can have at most 1 MiB; send a longer prompt by POST /api/sessions/{id}/runs";
/// How many sessions one connection may subscribe to.
const MOST_WATCHED: usize = 256;
/// A connection that is silent for this long gets a ping.
const SILENCE: Duration = Duration::from_secs(20);

/// The close code for a caller who was signed out. Clients have to sign in before they reconnect.
const SIGNED_OUT: u16 = 4401;

pub(super) async fn open(
    State(app): State<App>,
    caller: Caller,
    credential: Credential,
    upgrade: WebSocketUpgrade,
) -> Fallible<Response> {
    let permit = app.limits.sockets.take(&caller.user)?;
    let upgrade = upgrade.protocols([SOCKET]).max_message_size(LARGEST).max_frame_size(LARGEST);
    Ok(upgrade.on_upgrade(async move |socket| {
        let metrics = Arc::clone(&app.metrics);
        let _open = (Gauged::count(&metrics.sockets), permit);
        // A client that disconnected needs no answer.
        let _ = serve(app, caller, credential, socket).await;
    }))
}

type Watched =
    std::pin::Pin<Box<dyn Future<Output = (String, Reader, Fallible<Vec<Arc<Logged>>>)> + Send>>;

struct Connection {
    app: App,
    caller: Caller,
    credential: Credential,
    out: SplitSink<WebSocket, Frame>,
    watched: FuturesUnordered<Watched>,
    names: std::collections::HashSet<String>,
}

async fn serve(
    app: App,
    caller: Caller,
    credential: Credential,
    socket: WebSocket,
) -> Result<(), axum::Error> {
    let (out, mut incoming) = socket.split();
    let mut news = app.approvals.news();
    let mut runs = app.sessions.changes();
    let mut connection = Connection {
        app,
        caller,
        credential: credential.clone(),
        out,
        watched: FuturesUnordered::new(),
        names: std::collections::HashSet::new(),
    };
    connection.greet().await?;
    let closing = connection.app.closing.clone();
    let mut heartbeat = tokio::time::interval(SILENCE);
    let mut signed_out = std::pin::pin!(credential.clone().ended());
    // A client that sends too much is not read for a while, so it has to wait.
    let mut pause = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
    let mut is_paused = false;
    loop {
        tokio::select! {
            // First: nothing is done for, or sent to, a caller who was signed out.
            biased;
            () = &mut signed_out => return connection.close(SIGNED_OUT, "signed_out").await,
            () = &mut pause, if is_paused => is_paused = false,
            frame = incoming.next(), if !is_paused => {
                match frame {
                    Some(Ok(Frame::Text(text))) => connection.hear(&text).await?,
                    Some(Ok(Frame::Binary(_))) => connection.complain(&ApiError::bad_request("not_text", "messages must be JSON text")).await?,
                    Some(Ok(Frame::Close(_))) | None => return Ok(()),
                    Some(Ok(_)) => {}
                    // Of all errors of a frame, only this one can be fixed by the client.
                    Some(Err(error)) if error.to_string().contains("too long") => {
                        return connection.close(close_code::SIZE, TOO_LARGE).await;
                    }
                    Some(Err(error)) => return Err(error),
                }
                if let Err(wait) = credential.take_request() {
                    pause.as_mut().reset(tokio::time::Instant::now() + wait);
                    is_paused = true;
                }
            },
            approval = news.recv() => match approval {
                Ok(approval) => connection.tell(&approval).await?,
                // It was too slow and missed notifications, so it receives the whole state again.
                Err(RecvError::Lagged(_)) => connection.greet().await?,
                Err(RecvError::Closed) => return Ok(()),
            },
            run = runs.recv() => match run {
                Ok(run) => connection.tell_run(&run).await?,
                // The greeting contains the whole state again.
                Err(RecvError::Lagged(_)) => connection.greet().await?,
                Err(RecvError::Closed) => return Ok(()),
            },
            Some((session, reader, events)) = connection.watched.next() => connection.pass_on(session, reader, events).await?,
            () = closing.cancelled() => return connection.close(close_code::AWAY, "the server is stopping").await,
            _ = heartbeat.tick() => connection.out.send(Frame::Ping(bytes::Bytes::new())).await?,
        }
    }
}

impl Connection {
    async fn close(&mut self, code: u16, reason: &'static str) -> Result<(), axum::Error> {
        let farewell = CloseFrame { code, reason: reason.into() };
        self.out.send(Frame::Close(Some(farewell))).await
    }

    async fn say(&mut self, value: Value) -> Result<(), axum::Error> {
        self.out.send(Frame::Text(value.to_string().into())).await
    }

    async fn complain(&mut self, error: &ApiError) -> Result<(), axum::Error> {
        self.say(json!({"type": "error", "error": error.detail()})).await
    }

    /// Sends who the client is, its pending requests and the active runs.
    async fn greet(&mut self) -> Result<(), axum::Error> {
        let pending = match self.app.approvals.pending(&self.caller, &greeting()).await {
            Ok(pending) => pending,
            Err(error) => return self.complain(&error).await,
        };
        let user = self.app.guard.users.name_of(&self.caller.user);
        self.say(json!({"type": "hello", "user": user, "pending": pending.len()})).await?;
        for approval in pending {
            self.say(spoken::request(&approval)).await?;
        }
        match at_work(&self.app, &self.caller).await {
            Ok(runs) => {
                for run in runs {
                    self.tell_run(&run).await?;
                }
                Ok(())
            }
            Err(error) => self.complain(&error).await,
        }
    }

    async fn tell(&mut self, approval: &Approval) -> Result<(), axum::Error> {
        if !self.caller.may_see(&approval.owner) {
            return Ok(());
        }
        let out = if approval.is_pending() {
            spoken::request(approval)
        } else {
            let mut approval = approval.clone();
            approval.name_users(&self.app.guard.users);
            spoken::resolved(&approval)
        };
        self.say(out).await
    }

    async fn tell_run(&mut self, run: &Run) -> Result<(), axum::Error> {
        if !self.caller.may_see(&run.owner) {
            return Ok(());
        }
        let mut run = run.clone();
        run.name_users(&self.app.guard.users);
        self.say(json!({"type": "run", "run": run})).await
    }

    async fn pass_on(
        &mut self,
        session: String,
        reader: Reader,
        events: Fallible<Vec<Arc<Logged>>>,
    ) -> Result<(), axum::Error> {
        let events = match events {
            Ok(events) => events,
            Err(error) => {
                self.names.remove(&session);
                return self.complain(&error).await;
            }
        };
        for event in events {
            for out in spoken::of_event(&session, &event.event) {
                self.say(out).await?;
            }
        }
        self.watched.push(next(session, reader));
        Ok(())
    }

    async fn hear(&mut self, text: &str) -> Result<(), axum::Error> {
        let said = match serde_json::from_str(text) {
            Ok(Object(said)) => said,
            Err(error) => {
                let error = ApiError::bad_request(
                    "invalid_message",
                    format!("this is not a message of the protocol: {error}"),
                );
                return self.complain(&error).await;
            }
        };
        if text.len() > SMALL && !may_be_large(&said) {
            let message = format!(
                "this message has {} bytes; only prompts and changed arguments may have more than {SMALL}",
                text.len()
            );
            return self.complain(&ApiError::bad_request("message_too_large", message)).await;
        }
        match self.follow(said).await {
            Ok(Some(answer)) => self.say(answer).await,
            Ok(None) => Ok(()),
            Err(error) => self.complain(&error).await,
        }
    }

    async fn follow(&mut self, said: Said) -> Fallible<Option<Value>> {
        self.credential.check()?;
        match said {
            Said::Ping => Ok(Some(json!({"type": "pong"}))),
            Said::Subscribe { session_id, after } => {
                self.watch(&session_id, after.unwrap_or(0)).await.map(|()| None)
            }
            Said::Prompt { session_id, text, push, key } => {
                let new = NewRun { pushes: push, key, ..NewRun::text(text) };
                self.prompt(session_id, new).await.map(Some)
            }
            Said::Cancel { run_id } => {
                self.app.sessions.cancel(&self.caller, &run_id).await?;
                Ok(None)
            }
            Said::PermissionResponse { permission_id, decision } => {
                // All clients that may see it are notified, this one too.
                self.app.decide(&self.caller, "websocket", &permission_id, decision).await?;
                Ok(None)
            }
            Said::QuestionResponse { question_id, answers } => {
                self.app.answer(&self.caller, "websocket", &question_id, answers).await?;
                Ok(None)
            }
        }
    }

    async fn watch(&mut self, id: &str, after: u64) -> Fallible<()> {
        let session = self.app.sessions.find(&self.caller, id).await?;
        if self.names.len() >= MOST_WATCHED {
            return Err(ApiError::conflict(
                "too_many_sessions",
                "one connection can watch 256 sessions",
            ));
        }
        if self.names.insert(session.id.clone()) {
            let reader = self.app.sessions.log.reader(&log_writers::stream(&session.id)?, after);
            self.watched.push(next(session.id, reader));
        }
        Ok(())
    }

    /// Without a session, creates one and subscribes to it.
    async fn prompt(&mut self, session: Option<String>, new: NewRun) -> Fallible<Value> {
        let session = match session {
            Some(id) => self.app.sessions.find(&self.caller, &id).await?,
            None => {
                let setup = Setup { cwd: self.app.folder(None)?, ..Setup::default() };
                let title: String = new.prompt.chars().take(60).collect();
                let (sessions, user) = (&self.app.sessions, &self.caller.user);
                let key = new.key.as_ref().map(|key| format!("prompt {key}"));
                // A repeated prompt goes to the same session, which needs no more room.
                let is_known = match &key {
                    Some(key) => sessions.keyed(user, key).await?.is_some(),
                    None => false,
                };
                if !is_known {
                    self.app.room_for_session(user).await?;
                }
                let session = match &key {
                    Some(key) => sessions.by_key(user, key, &title, setup).await?,
                    None => sessions.create(user, &title, setup).await?,
                };
                self.watch(&session.id, 0).await?;
                session
            }
        };
        let run = self.app.sessions.submit(&session, new).await?;
        Ok(json!({"type": "accepted", "sessionId": session.id, "runId": run.id}))
    }
}

/// Whether a message may contain a long text or arguments.
fn may_be_large(said: &Said) -> bool {
    match said {
        Said::Prompt { .. } | Said::QuestionResponse { .. } => true,
        Said::PermissionResponse { decision, .. } => decision.input.is_some(),
        Said::Ping | Said::Subscribe { .. } | Said::Cancel { .. } => false,
    }
}

/// How many items a new client receives at once. The rest is in lists.
fn greeting() -> Page {
    Page { limit: MOST, ..Page::default() }
}

/// The runs that have not ended. A run that changes meanwhile has its own message.
async fn at_work(app: &App, caller: &Caller) -> Fallible<Vec<Run>> {
    let mut runs = Vec::new();
    for state in ["queued", "running", "waiting"] {
        let field = Some(("state".to_owned(), state.to_owned()));
        let filter = Filter { field, ..seen_by(caller) };
        runs.extend(app.sessions.records.list::<Run>(&filter, &greeting()).await?);
    }
    Ok(runs)
}

fn next(session: String, mut reader: Reader) -> Watched {
    Box::pin(async move {
        let events = reader.next().await;
        (session, reader, events)
    })
}
