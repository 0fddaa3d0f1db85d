//! The page that shows what the server can do.

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::app::App;

const PAGE: &str = include_str!("page/docs.html");
const SCRIPT: &str = include_str!("page/docs.js");
const STYLE: &str = include_str!("page/docs.css");

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/docs", get(|| async { text("text/html; charset=utf-8", PAGE) }))
        .route("/docs/docs.js", get(|| async { text("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/docs/docs.css", get(|| async { text("text/css; charset=utf-8", STYLE) }))
}

fn text(kind: &'static str, text: &'static str) -> impl IntoResponse {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    (headers, text)
}
