//! A content management system for tests: records in memory, in the format of Strapi, and faults on request.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::Cms;

/// What the system does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// It redirects the client.
    Redirects,
    /// It sends an endless response.
    NeverEnds,
    /// It accepts the request and never answers.
    Silent,
    /// It sends something that is not JSON.
    Nonsense,
    /// It answers with an error.
    Fails,
}

/// A request: its path, and the token with it.
pub(super) type Seen = (String, Option<String>);

#[derive(Clone, Default)]
pub(super) struct Stub {
    /// Records in the order they are listed.
    pub(super) records: Arc<Mutex<Vec<Value>>>,
    pub(super) fault: Arc<Mutex<Fault>>,
    pub(super) seen: Arc<Mutex<Vec<Seen>>>,
    /// How many bytes of the endless response it sent.
    pub(super) n_sent: Arc<AtomicUsize>,
}

impl Stub {
    /// Starts it, and returns a client with a token.
    pub(super) async fn start(&self, time: Duration) -> Cms {
        let app = Router::new()
            .route("/api/skills", get(list))
            .route("/api/skills/{id}", get(one))
            .route("/elsewhere", get(|| async { Json(json!({"data": []})) }))
            .layer(axum::middleware::from_fn_with_state(self.clone(), misbehave))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Cms::new(&format!("http://{address}/api/skills"), Some("cms-token".to_owned()), time)
            .unwrap()
    }

    pub(super) fn put(&self, records: Value) {
        *self.records.lock() = records.as_array().unwrap().clone();
    }
}

async fn misbehave(
    State(stub): State<Stub>,
    request: Request,
    next: axum::middleware::Next,
) -> Response {
    let token = request.headers().get("authorization");
    let token = token.map(|it| it.to_str().unwrap().to_owned());
    stub.seen.lock().push((request.uri().path().to_owned(), token));
    let fault = *stub.fault.lock();
    match fault {
        Fault::None => next.run(request).await,
        Fault::Redirects => Redirect::temporary("/elsewhere").into_response(),
        Fault::NeverEnds => {
            let piece = Bytes::from(vec![b' '; 64 * 1024]);
            let n_sent = Arc::clone(&stub.n_sent);
            let pieces = futures::stream::repeat_with(move || {
                n_sent.fetch_add(piece.len(), Ordering::Relaxed);
                Ok::<_, std::io::Error>(piece.clone())
            });
            Body::from_stream(pieces).into_response()
        }
        Fault::Silent => std::future::pending().await,
        Fault::Nonsense => "<html>".into_response(),
        Fault::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn list(State(stub): State<Stub>, Query(query): Query<BTreeMap<String, String>>) -> Response {
    let number = |name: &str| query.get(name).and_then(|it| it.parse::<usize>().ok());
    let page = number("pagination[page]").unwrap_or(1);
    let size = number("pagination[pageSize]").unwrap_or(25);
    let records = stub.records.lock();
    let data: Vec<Value> = records.iter().skip((page - 1) * size).take(size).cloned().collect();
    let pages = records.len().div_ceil(size);
    Json(json!({"data": data, "meta": {"pagination": {"page": page, "pageCount": pages}}}))
        .into_response()
}

async fn one(State(stub): State<Stub>, Path(id): Path<String>) -> Response {
    let records = stub.records.lock();
    let is_it = |record: &&Value| {
        record["documentId"] == id.as_str() || id.parse().is_ok_and(|id: u64| record["id"] == id)
    };
    match records.iter().find(is_it) {
        Some(record) => Json(json!({"data": record})).into_response(),
        None => (StatusCode::NOT_FOUND, Json(json!({"data": null, "error": {"status": 404}})))
            .into_response(),
    }
}
