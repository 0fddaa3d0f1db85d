//! Server-sent events: the log from a number on, and then what comes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::Stream;

use crate::app::App;
use crate::fault::{ApiError, Fallible};
use crate::log::{Logged, Reader};
use crate::metrics::Metrics;

/// How long a stream may be silent; proxies cut silent connections.
const HEARTBEAT: Duration = Duration::from_secs(15);

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
pub(crate) fn stream(app: &App, reader: Reader, render: Render) -> Fallible<Response> {
    let open = Open::new(app)?;
    let mut response = Body::from_stream(events(reader, render, open)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that collect answers would hold them back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

fn events(
    reader: Reader,
    render: Render,
    open: Open,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(Some((reader, render, open)), async |state| {
        let (mut reader, mut render, open) = state?;
        let events = match tokio::time::timeout(HEARTBEAT, reader.next()).await {
            Ok(Ok(events)) => events,
            // The log has ended; the client will come again.
            Ok(Err(_)) => return None,
            Err(_) => {
                let alive = Bytes::from_static(b": keep-alive\n\n");
                return Some((Ok(alive), Some((reader, render, open))));
            }
        };
        let (bytes, is_last) = joined(&events, &mut render);
        Some((Ok(bytes), (!is_last).then_some((reader, render, open))))
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
struct Open(Arc<Metrics>);

impl Open {
    fn new(app: &App) -> Fallible<Self> {
        let limit = app.config.limits.subscribers;
        let before = app.metrics.subscribers.fetch_add(1, Relaxed);
        let open = Self(Arc::clone(&app.metrics));
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
        self.0.subscribers.fetch_sub(1, Relaxed);
    }
}
