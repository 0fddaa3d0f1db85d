//! How large a body may be, and how long it may take to arrive.
//!
//! The whole body is read here before a route begins. A body that is too large or too slow is refused in the server's
//! format, and a route never waits for a client. The body of a caller who was refused is not read.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use ostler_base::error::ApiError;

use super::guard::{FromStranger, is_upgrade};

/// Limits of bodies.
#[derive(Clone, Debug)]
pub struct BodyLimits {
    /// The maximum number of bytes, unless `by_path` has another limit.
    pub bytes: usize,
    /// The maximum number of bytes for paths with this prefix; the longest prefix counts.
    pub by_path: Vec<(String, usize)>,
    /// The maximum number of bytes from strangers, unless `by_path` has another limit.
    pub from_strangers: usize,
    /// How long the whole body may take.
    pub time: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            bytes: 4 * 1024 * 1024,
            by_path: Vec::new(),
            from_strangers: 4 * 1024,
            time: Duration::from_secs(30),
        }
    }
}

impl BodyLimits {
    fn bytes(&self, path: &str, is_from_stranger: bool) -> usize {
        let space_setup = self.by_path.iter().filter(|(beginning, _)| path.starts_with(beginning));
        let longest = space_setup.max_by_key(|(beginning, _)| beginning.len());
        let usual = if is_from_stranger { self.from_strangers } else { self.bytes };
        longest.map_or(usual, |(_, bytes)| *bytes)
    }
}

/// Reads the body and passes the request on.
pub async fn check(
    State(limits): State<Arc<BodyLimits>>,
    request: Request,
    next: Next,
) -> Response {
    // The bytes after an upgrade are not a body.
    if is_upgrade(request.headers()) && request.method() == Method::GET {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let is_from_stranger = parts.extensions.get::<FromStranger>().is_some();
    let most = limits.bytes(parts.uri.path(), is_from_stranger);
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return too_large(most).into_response();
    }
    match tokio::time::timeout(limits.time, read(body, most)).await {
        Ok(Ok(bytes)) => {
            // The body is complete now, so this header no longer applies.
            parts.headers.remove(header::TRANSFER_ENCODING);
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Ok(Err(error)) => error.into_response(),
        Err(_) => too_slow(limits.time).into_response(),
    }
}

async fn read(body: Body, most: usize) -> Result<Bytes, ApiError> {
    let mut pieces = body.into_data_stream();
    let mut whole = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| {
            ApiError::bad_request("unreadable_body", "the body ended before it was complete")
        })?;
        if whole.len() + piece.len() > most {
            return Err(too_large(most));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.into())
}

fn too_large(most: usize) -> ApiError {
    let message = format!("the body is larger than {most} bytes, the maximum for this path");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
}

fn too_slow(time: Duration) -> ApiError {
    let message = format!("the body did not arrive within {} s", time.as_secs_f32());
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::DefaultBodyLimit;
    use axum::routing::post;
    use tower::ServiceExt as _;

    use super::*;

    fn app(limits: BodyLimits) -> Router {
        Router::new()
            .route("/{*path}", post(|body: Bytes| async move { body.len().to_string() }))
            .layer(DefaultBodyLimit::disable())
            .layer(axum::middleware::from_fn_with_state(Arc::new(limits), check))
    }

    async fn status(limits: BodyLimits, request: axum::http::request::Builder, body: Body) -> u16 {
        let request = request.method("POST").body(body).unwrap();
        app(limits).oneshot(request).await.unwrap().status().as_u16()
    }

    // Seen to fail without the check of the length, and without the count (a chunked body has no length).
    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused_with_and_without_a_length() {
        let by_path = vec![("/a".to_owned(), 5), ("/a/b".to_owned(), 20)];
        let limits = BodyLimits { bytes: 10, by_path, ..BodyLimits::default() };
        let check = async |path: &str, size: usize, expected: u16| {
            let whole = Request::builder().uri(path);
            let whole = status(limits.clone(), whole, Body::from("x".repeat(size))).await;
            let bytes = (0..size).map(|_| Ok::<_, std::io::Error>("x"));
            let pieces = Body::from_stream(futures::stream::iter(bytes));
            let pieces = status(limits.clone(), Request::builder().uri(path), pieces).await;
            assert_eq!((whole, pieces), (expected, expected), "{path} {size}");
        };
        check("/x", 10, 200).await;
        check("/x", 11, 413).await;
        check("/a", 6, 413).await;
        check("/a/b", 20, 200).await;
        check("/a/b", 21, 413).await;
        let announced = Request::builder().uri("/x").header("content-length", "99999999999");
        let nothing_came = Body::from_stream(futures::stream::pending::<std::io::Result<Bytes>>());
        assert_eq!(
            status(limits, announced, nothing_came).await,
            413,
            "without waiting for the body"
        );
    }

    // Seen to hang without the limit.
    #[tokio::test]
    async fn a_body_that_never_ends_is_refused() {
        let drops = futures::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Some((Ok::<_, std::io::Error>("x"), ()))
        });
        let limits = BodyLimits { time: Duration::from_millis(100), ..BodyLimits::default() };
        let request = Request::builder().uri("/x");
        assert_eq!(status(limits, request, Body::from_stream(drops)).await, 408);
    }

    #[tokio::test]
    async fn an_incomplete_body_is_refused() {
        let broken = [Ok("x"), Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))];
        let body = Body::from_stream(futures::stream::iter(broken));
        assert_eq!(status(BodyLimits::default(), Request::builder().uri("/x"), body).await, 400);
    }
}
