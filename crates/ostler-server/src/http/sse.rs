//! Server-sent events: the log from a number on, and then what comes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::fault::{ApiError, Fallible};
use crate::log::{Logged, Reader};
use crate::metrics::Metrics;
use crate::security::permits::UserPermit;
use crate::security::users::Caller;

/// How long a stream may be silent; proxies cut silent connections.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a client waits before it comes again; a server that is started anew takes about as long.
const RETRY: &[u8] = b"retry: 2000\n\n";

/// What a reader makes of an event.
pub(crate) type Render = Box<dyn FnMut(&Logged) -> Rendered + Send>;

pub(crate) struct Rendered {
    pub(crate) frame: Bytes,
    /// Whether the stream ends with it.
    pub(crate) is_last: bool,
}

/// The highest number an event can have: beyond it, not every language's numbers are exact.
pub(crate) const LAST: u64 = (1 << 53) - 1;

/// Where a client goes on: after what it saw last, or after what it says.
pub(crate) fn position(headers: &HeaderMap, said: Option<u64>) -> Fallible<u64> {
    let Some(last) = headers.get("last-event-id") else { return number(said.unwrap_or(0)) };
    let last = last.to_str().ok().and_then(|text| text.trim().parse().ok());
    last.filter(|last| *last <= LAST).ok_or_else(|| {
        let message = "Last-Event-ID is not the number of an event";
        ApiError::bad_request("invalid_last_event_id", message)
    })
}

/// The number of an event, as a client says it.
pub(crate) fn number(said: u64) -> Fallible<u64> {
    if said > LAST {
        return Err(ApiError::invalid("after", format!("no event has a number beyond {LAST}")));
    }
    Ok(said)
}

/// Answers with a stream of events.
pub(crate) fn stream(
    app: &App,
    caller: &Caller,
    reader: Reader,
    render: Render,
) -> Fallible<Response> {
    let open = Open::new(app, caller)?;
    let retry = futures::stream::once(async { Ok(Bytes::from_static(RETRY)) });
    let events = events(Following { reader, render, closing: app.closing.clone(), _open: open });
    let mut response = Body::from_stream(retry.chain(events)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that collect answers would hold them back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// One who reads.
struct Following {
    reader: Reader,
    render: Render,
    /// The server ends.
    closing: CancellationToken,
    _open: Open,
}

fn events(following: Following) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(Some(following), async |state| {
        let mut following = state?;
        let Following { reader, render, closing, .. } = &mut following;
        let events = tokio::select! {
            biased;
            events = reader.next() => events,
            () = tokio::time::sleep(HEARTBEAT) => {
                return Some((Ok(Bytes::from_static(b": keep-alive\n\n")), Some(following)));
            }
            // All that was to be told is told; the client will come again.
            () = closing.cancelled() => return None,
        };
        // The log has ended, which is the same.
        let (bytes, is_last) = joined(&events.ok()?, render);
        Some((Ok(bytes), (!is_last).then_some(following)))
    })
}

fn joined(events: &[Arc<Logged>], render: &mut Render) -> (Bytes, bool) {
    // Mostly there is one, which needs no copy.
    if let [only] = events {
        let rendered = render(only);
        return (rendered.frame, rendered.is_last);
    }
    let mut all = Vec::new();
    for event in events {
        let rendered = render(event);
        all.extend_from_slice(&rendered.frame);
        if rendered.is_last {
            return (all.into(), true);
        }
    }
    (all.into(), false)
}

/// Counts a stream for as long as it is open.
struct Open {
    metrics: Arc<Metrics>,
    _permit: UserPermit,
}

impl Open {
    fn new(app: &App, caller: &Caller) -> Fallible<Self> {
        let permit = app.limits.streams.take(&caller.user)?;
        let limit = app.config.limits.subscribers;
        let before = app.metrics.subscribers.fetch_add(1, Relaxed);
        let open = Self { metrics: Arc::clone(&app.metrics), _permit: permit };
        if usize::try_from(before).unwrap_or(0) < limit {
            return Ok(open);
        }
        let message = format!("{limit} streams are open, which is as many as may be");
        Err(ApiError::unavailable("too_many_streams", message)
            .hint("close some, or come back later"))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.subscribers.fetch_sub(1, Relaxed);
    }
}
