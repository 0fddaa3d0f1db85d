//! What browsers can open: the web page at `/`, and the description of the API at `/docs`.
//!
//! The web page is built from `web/` and embedded into the program by `build.rs`. Without it everything else works, and
//! `/` says how to build it.

use std::io::Read as _;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ostler_core::app::App;
use ostler_door::site::Site;

const PAGE: &str = include_str!("page/docs.html");
const SCRIPT: &str = include_str!("page/docs.js");
const STYLE: &str = include_str!("page/docs.css");

/// Paths with their gzipped content.
type Files = &'static [(&'static str, &'static [u8])];

const BUILT: Files = include!(concat!(env!("OUT_DIR"), "/page.rs"));

const NOT_BUILT: &str = "This program was built without its web page: run `cargo xtask web` and build it again. \
    The API, which works without it, is described at /docs.\n";

pub(super) fn routes() -> Router<App> {
    let router = Router::new()
        .route("/docs", get(|| async { text("text/html; charset=utf-8", PAGE) }))
        .route("/docs/docs.js", get(|| async { text("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/docs/docs.css", get(|| async { text("text/css; charset=utf-8", STYLE) }));
    built(BUILT).into_iter().fold(router, |router, (path, packed)| {
        let name = if path == "/" || path == CALLBACK { "/index.html" } else { path };
        router
            .route(path, get(move |headers: HeaderMap| async move { file(name, packed, &headers) }))
    })
}

/// Where browsers come back after signing in to an MCP server: the page sends the address to the server.
pub(super) const CALLBACK: &str = "/mcp-callback";

/// Opens the page to everyone: it reveals nothing by itself, and is needed to sign in.
pub fn open(site: Site) -> Site {
    built(BUILT).into_iter().fold(site, |site, (path, _)| site.public(Method::GET, path))
}

/// The files by request path.
fn built(files: Files) -> Vec<(&'static str, &'static [u8])> {
    let mut found: Vec<_> = files.to_vec();
    for (path, _) in &mut found {
        if *path == "/index.html" {
            *path = "/";
        }
    }
    if found.is_empty() {
        found.push(("/", &[]));
    }
    let page = found.iter().find(|(path, _)| *path == "/").map(|(_, packed)| *packed);
    found.extend(page.map(|packed| (CALLBACK, packed)));
    found
}

fn file(name: &'static str, packed: &'static [u8], headers: &HeaderMap) -> Response {
    if packed.is_empty() {
        let kind = "text/plain; charset=utf-8";
        return (StatusCode::NOT_FOUND, text(kind, NOT_BUILT)).into_response();
    }
    let mut response = if takes_gzip(headers) {
        ([(header::CONTENT_ENCODING, "gzip")], packed).into_response()
    } else {
        let mut plain = Vec::new();
        match flate2::read::GzDecoder::new(packed).read_to_end(&mut plain) {
            Ok(_) => plain.into_response(),
            Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control(name)));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response
}

/// Files below `/assets` have a digest of their content in their names: changed content is another file.
fn cache_control(name: &str) -> &'static str {
    if name.starts_with("/assets/") { "public, max-age=31536000, immutable" } else { "no-cache" }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get(header::ACCEPT_ENCODING).and_then(|it| it.to_str().ok());
    said.unwrap_or_default().split(',').any(|coding| {
        let mut words = coding.split(';').map(str::trim);
        words.next() == Some("gzip") && !words.any(|word| matches!(word, "q=0" | "q=0.0"))
    })
}

fn text(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn packed(text: &str) -> &'static [u8] {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap().leak()
    }

    async fn asked(accepts: &str, name: &'static str, packed: &'static [u8]) -> (Response, String) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, accepts.parse().unwrap());
        let (parts, body) = file(name, packed, &headers).into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        (
            Response::from_parts(parts, axum::body::Body::empty()),
            String::from_utf8_lossy(&bytes).into(),
        )
    }

    #[tokio::test]
    async fn a_file_is_sent_in_an_accepted_encoding_and_cached_if_its_name_has_a_digest() {
        let page = packed("<p>hello");
        let (plain, body) = asked("identity, gzip;q=0", "/index.html", page).await;
        assert_eq!(body, "<p>hello");
        assert!(!plain.headers().contains_key("content-encoding"));
        assert_eq!(plain.headers()["cache-control"], "no-cache");
        let (zipped, body) = asked("br, gzip", "/assets/a-1f.js", page).await;
        assert_ne!(body, "<p>hello");
        assert_eq!(zipped.headers()["content-encoding"], "gzip");
        assert_eq!(zipped.headers()["content-type"], "text/javascript; charset=utf-8");
        assert!(zipped.headers()["cache-control"].to_str().unwrap().contains("immutable"));
    }

    #[tokio::test]
    async fn without_a_page_the_server_says_how_to_build_it() {
        let [("/", nothing), (CALLBACK, _)] = built(&[])[..] else { panic!("two paths") };
        let (response, body) = asked("gzip", "/index.html", nothing).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert!(body.contains("cargo xtask web"), "{body}");
    }
}
