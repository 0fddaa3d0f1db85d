//! Answers over HTTP: one JSON message, or a stream of events that ends with the answer.

use std::convert::Infallible;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, Stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// How long an answer may take before its stream begins. Until then it can be plain JSON with a status of its own.
const SOON: Duration = Duration::from_millis(500);
/// How often a stream without messages shows that it lives. Clients and proxies give up on silent ones.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(super) type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Empty::new().boxed_unsync());
    *reply.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    }
    reply
}

pub(super) fn message(status: StatusCode, message: &Value) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(message.to_string())).boxed_unsync());
    *reply.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, json);
    reply
}

/// A request that is refused before it is read as a message.
pub(super) fn refused(status: StatusCode, reason: &str) -> Reply {
    let error = json!({"code": -32000, "message": reason});
    let mut reply = message(status, &json!({"jsonrpc": "2.0", "id": null, "error": error}));
    if status == StatusCode::UNAUTHORIZED {
        reply.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    reply
}

pub(super) fn with_header(mut reply: Reply, name: &'static str, value: &str) -> Reply {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(HeaderName::from_static(name), value);
    }
    reply
}

/// A request that is being answered: dropping it drops the tool that runs in it.
pub(super) struct Work {
    pub(super) answer: BoxFuture<'static, Option<Value>>,
    pub(super) messages: mpsc::Receiver<Value>,
}

/// Answers a request: with JSON if the answer comes soon and alone, otherwise with a stream.
pub(super) async fn reply(mut work: Work, status: fn(&Value) -> StatusCode) -> Reply {
    let first = tokio::select! {
        biased;
        Some(first) = work.messages.recv() => Some(first),
        answer = &mut work.answer => {
            let Some(answer) = answer else { return empty(StatusCode::ACCEPTED) };
            return match work.messages.try_recv() {
                Err(_) => message(status(&answer), &answer),
                Ok(first) => {
                    let mut all = vec![first];
                    while let Ok(next) = work.messages.try_recv() {
                        all.push(next);
                    }
                    all.push(answer);
                    events(stream::iter(all.into_iter().map(Some)))
                }
            };
        }
        () = tokio::time::sleep(SOON) => None,
    };
    events(stream::unfold(Phase::Running(work, first), |phase| async move { phase.next().await }))
}

enum Phase {
    Running(Work, Option<Value>),
    /// The answer came; what was sent before it is still to be written.
    Ending(Vec<Value>),
}

impl Phase {
    /// The next message; `None` inside for a sign of life.
    async fn next(self) -> Option<(Option<Value>, Self)> {
        match self {
            Self::Running(work, Some(first)) => Some((Some(first), Self::Running(work, None))),
            Self::Running(mut work, None) => tokio::select! {
                biased;
                Some(next) = work.messages.recv() => Some((Some(next), Self::Running(work, None))),
                answer = &mut work.answer => {
                    let mut rest = Vec::new();
                    while let Ok(next) = work.messages.try_recv() {
                        rest.push(next);
                    }
                    rest.extend(answer);
                    // The last is taken first.
                    rest.reverse();
                    let first = rest.pop()?;
                    Some((Some(first), Self::Ending(rest)))
                }
                () = tokio::time::sleep(SIGN_OF_LIFE) => Some((None, Self::Running(work, None))),
            },
            Self::Ending(mut rest) => rest.pop().map(|next| (Some(next), Self::Ending(rest))),
        }
    }
}

/// A stream of messages as server-sent events; `None` is a sign of life.
pub(super) fn events(messages: impl Stream<Item = Option<Value>> + Send + 'static) -> Reply {
    use futures::StreamExt as _;
    let frames = messages.map(|message| {
        let text = match message {
            Some(message) => format!("event: message\ndata: {message}\n\n"),
            None => ": \n\n".to_owned(),
        };
        Ok::<_, Infallible>(Frame::data(Bytes::from(text)))
    });
    let mut reply = Response::new(StreamBody::new(frames).boxed_unsync());
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// The notifications of a session, until its client closes the stream.
pub(super) fn session_events(
    next: impl Fn() -> BoxFuture<'static, Value> + Send + 'static,
) -> Reply {
    events(stream::unfold(next, |next| async move {
        let message = tokio::time::timeout(SIGN_OF_LIFE, next()).await.ok();
        Some((message, next))
    }))
}
