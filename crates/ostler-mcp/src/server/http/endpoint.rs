//! One address: messages by `POST`, the stream of a session by `GET`, its end by `DELETE`.

use std::net::SocketAddr;

use futures::FutureExt as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{ACCEPT, HeaderMap};
use hyper::{Method, Request, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use super::super::{Connection, Server};
use super::HttpOptions;
use super::guard::Guard;
use super::headers::{self, SESSION};
use super::reply::{self, Reply, Work};
use super::sessions::Sessions;
use crate::rpc::{self, Failure};

/// How many messages of a request may wait for its client before further ones are dropped.
const WAITING_MESSAGES: usize = 256;

pub(super) struct Endpoint {
    server: Server,
    path: String,
    body_limit: usize,
    guard: Guard,
    sessions: Sessions,
}

impl Endpoint {
    pub(super) fn new(server: Server, options: HttpOptions, address: SocketAddr) -> Self {
        let HttpOptions { path, token, hosts, most_sessions, body_limit, .. } = options;
        let (guard, sessions) = (Guard::new(address, hosts, token), Sessions::new(most_sessions));
        Self { server, path, body_limit, guard, sessions }
    }

    pub(super) async fn answer<B>(&self, request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let Err((status, reason)) = self.guard.check(request.uri(), request.headers()) {
            return reply::refused(status, &reason);
        }
        if request.uri().path() != self.path {
            return reply::empty(StatusCode::NOT_FOUND);
        }
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => self.stream(request.headers()),
            Method::DELETE => self.end(request.headers()),
            _ => reply::empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    async fn post<B>(&self, request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, self.body_limit).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let reason = format!("a message may have {} bytes at most", self.body_limit);
                return reply::refused(StatusCode::PAYLOAD_TOO_LARGE, &reason);
            }
            Err(_) => return reply::refused(StatusCode::BAD_REQUEST, "the message is cut off"),
        };
        let message: Value = match serde_json::from_slice(&body) {
            Ok(message) => message,
            Err(error) => {
                let message = format!("the message is not JSON: {error}");
                let failure = Failure { code: -32700, message };
                let answer = rpc::answer(&Value::Null, Err(failure));
                return reply::message(StatusCode::BAD_REQUEST, &answer);
            }
        };
        match headers::is_stateless(&head.headers, &message) {
            true => self.without_session(&head.headers, message).await,
            false => self.with_session(&head.headers, message).await,
        }
    }

    async fn without_session(&self, headers: &HeaderMap, message: Value) -> Reply {
        let Some(id) = message.get("id").cloned() else {
            // A notification: there is nothing that it could be about.
            return reply::empty(StatusCode::ACCEPTED);
        };
        if let Err(refusal) = headers::check(headers, &message) {
            return reply::message(StatusCode::BAD_REQUEST, &refusal.answer(&id));
        }
        let connection = Connection::unannounced(self.server.clone());
        reply::reply(work(connection, message, true, ()), status).await
    }

    async fn with_session(&self, headers: &HeaderMap, message: Value) -> Reply {
        let given = headers::text(headers, SESSION);
        if given.is_none() && message["method"] == "initialize" {
            let Some((id, session)) = self.sessions.begin(&self.server) else {
                let reason = "there are too many sessions; end one and try again";
                return reply::refused(StatusCode::SERVICE_UNAVAILABLE, reason);
            };
            let work = work(session.connection.clone(), message, false, session);
            return reply::with_header(reply::reply(work, |_| StatusCode::OK).await, SESSION, &id);
        }
        let Some(given) = given else {
            let reason =
                "the message needs the header Mcp-Session-Id of a session; `initialize` begins one";
            return reply::refused(StatusCode::BAD_REQUEST, reason);
        };
        let Some(session) = self.sessions.find(given) else { return no_session() };
        let work = work(session.connection.clone(), message, false, session);
        reply::reply(work, |_| StatusCode::OK).await
    }

    fn stream(&self, headers: &HeaderMap) -> Reply {
        let accepted = headers::text(headers, ACCEPT.as_str()).unwrap_or_default();
        let Some(given) = headers::text(headers, SESSION) else {
            return reply::empty(StatusCode::METHOD_NOT_ALLOWED);
        };
        if !accepted.contains("text/event-stream") && !accepted.contains("*/*") {
            return reply::empty(StatusCode::NOT_ACCEPTABLE);
        }
        let Some(session) = self.sessions.find(given) else { return no_session() };
        let Some(open) = session.open_stream() else {
            let reason = "the session has an open stream already";
            return reply::refused(StatusCode::CONFLICT, reason);
        };
        reply::session_events(move || {
            let _while_open = &open;
            let connection = session.connection.clone();
            async move { connection.next_notification().await }.boxed()
        })
    }

    fn end(&self, headers: &HeaderMap) -> Reply {
        match headers::text(headers, SESSION).is_some_and(|id| self.sessions.end(id)) {
            true => reply::empty(StatusCode::NO_CONTENT),
            false => no_session(),
        }
    }
}

fn no_session() -> Reply {
    let reason = "there is no such session; `initialize` begins one";
    reply::refused(StatusCode::NOT_FOUND, reason)
}

/// Begins to answer a message. `held` is kept until the answer is there.
fn work<T: Send + 'static>(
    connection: Connection,
    message: Value,
    is_stateless: bool,
    held: T,
) -> Work {
    let (outgoing, messages) = mpsc::channel(WAITING_MESSAGES);
    let answer = async move {
        let answer = connection.handle_on(message, &outgoing, is_stateless).await;
        drop(held);
        answer
    };
    Work { answer: answer.boxed(), messages }
}

/// The status of an answer without a session.
fn status(answer: &Value) -> StatusCode {
    match answer["error"]["code"].as_i64() {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32700 | -32602 | -32600 | -32022..=-32020) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
