//! Server-sent events: the log after a number, and then new events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use ostler_base::error::{ApiError, Fallible};
use ostler_core::app::App;
use ostler_core::log::{Logged, Reader};
use ostler_core::metrics::Metrics;
use ostler_door::permits::UserPermit;
use ostler_door::users::Caller;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a stream may be silent; proxies cut silent connections.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a client waits before it reconnects; a restart of the server takes about as long.
const RETRY: &[u8] = b"retry: 2000\n\n";

/// Small events are sent together in chunks of about this many bytes.
const CHUNK: usize = 16 << 10;

/// A client that reads nothing for this long is slow. It is disconnected if its next events are no longer in memory.
const BLOCKED: Duration = Duration::from_secs(2);

/// Renders an event for a reader.
pub(crate) type Render = Box<dyn FnMut(&Logged) -> Rendered + Send>;

pub(crate) struct Rendered {
    pub(crate) frame: Bytes,
    /// Whether the stream ends with it.
    pub(crate) is_last: bool,
}

/// The highest number of an event: above it, not every language's numbers are exact.
pub(crate) const LAST: u64 = (1 << 53) - 1;

/// Where a client continues: after `Last-Event-ID`, or after the given number.
pub(crate) fn position(headers: &HeaderMap, given: Option<u64>) -> Fallible<u64> {
    let Some(last) = headers.get("last-event-id") else { return number(given.unwrap_or(0)) };
    let last = last.to_str().ok().and_then(|text| text.trim().parse().ok());
    last.filter(|last| *last <= LAST).ok_or_else(|| {
        let message = "Last-Event-ID is not the number of an event";
        ApiError::bad_request("invalid_last_event_id", message)
    })
}

/// Checks the number of an event from a client.
pub(crate) fn number(given: u64) -> Fallible<u64> {
    if given > LAST {
        return Err(ApiError::invalid("after", format!("no event has a number above {LAST}")));
    }
    Ok(given)
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
    let events = events(Following {
        reader,
        render,
        pending: VecDeque::new(),
        given: None,
        is_over: false,
        closing: app.closing.clone(),
        _open: open,
    });
    let mut response = Body::from_stream(retry.chain(events)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that buffer responses would delay events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// A reading client. The events that wait for it are shared by all readers; it has no copy beyond [`CHUNK`].
struct Following {
    reader: Reader,
    render: Render,
    /// Read from the log, and not sent yet.
    pending: VecDeque<Arc<Logged>>,
    /// When the last chunk was given to the connection, which asks for the next one when there is room.
    given: Option<Instant>,
    is_over: bool,
    /// Cancelled when the server stops.
    closing: CancellationToken,
    _open: Open,
}

impl Following {
    /// The next bytes; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        let was_blocked = self.given.take().is_some_and(|given| given.elapsed() >= BLOCKED);
        if was_blocked && let Some(last) = self.reader.fell_behind() {
            self.pending.clear();
            self.is_over = true;
            return Some(lagged(last));
        }
        loop {
            if let Some(chunk) = self.chunk() {
                return Some(chunk);
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                // The log has ended, or cannot be read: the client will reconnect.
                events = self.reader.next() => self.pending.extend(events.ok()?),
                () = tokio::time::sleep(HEARTBEAT) => {
                    return Some(Bytes::from_static(b": keep-alive\n\n"));
                }
                // All events were sent; the client will reconnect.
                () = self.closing.cancelled() => return None,
            }
        }
    }

    /// The pending events as bytes: a large event alone, which needs no copy, or several small ones.
    fn chunk(&mut self) -> Option<Bytes> {
        let mut small = Vec::new();
        while let Some(event) = self.pending.pop_front() {
            let rendered = (self.render)(&event);
            if rendered.is_last {
                self.pending.clear();
                self.is_over = true;
            }
            if small.is_empty() && (self.pending.is_empty() || rendered.frame.len() >= CHUNK) {
                if rendered.frame.is_empty() {
                    continue;
                }
                return Some(rendered.frame);
            }
            small.extend_from_slice(&rendered.frame);
            let next = self.pending.front().map_or(0, |next| next.event.body.as_str().len());
            if small.len() + next >= CHUNK {
                break;
            }
        }
        (!small.is_empty()).then(|| small.into())
    }
}

fn events(following: Following) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(following, async |mut following| {
        let bytes = following.next().await?;
        following.given = Some(Instant::now());
        Some((Ok(bytes), following))
    })
}

/// The last event of a stream whose client reads too slowly.
fn lagged(last: u64) -> Bytes {
    let message =
        "you read too slowly; connect again, and the stream continues after Last-Event-ID";
    let data = serde_json::json!({"code": "lagged", "message": message, "last": last});
    format!("event: lagged\ndata: {data}\n\n").into()
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
        let message = format!("{limit} streams are open, which is the maximum");
        Err(ApiError::unavailable("too_many_streams", message)
            .hint("close some, or try again later"))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.subscribers.fetch_sub(1, Relaxed);
    }
}
