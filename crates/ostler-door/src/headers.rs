//! Security headers of every response: a browser runs only the server's own scripts, loads nothing from other sites,
//! and shows no page in a frame.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

/// Scripts and styles only from files of this server; images may also be inline. Nothing from other sites: the URL of
/// an image in a model's text could carry data out.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const ALWAYS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // For browsers without support for `frame-ancestors`.
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
];

/// Adds the headers to a response. A route's own `cache-control` stays; without one, nothing is cached.
pub(crate) async fn add(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let is_shared = headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    if is_shared {
        let name = HeaderName::from_static("cross-origin-resource-policy");
        headers.insert(name, HeaderValue::from_static("cross-origin"));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    // Seen to fail with a policy without `script-src`, and with `'unsafe-inline'` in it.
    #[tokio::test]
    async fn every_response_has_the_headers_also_a_refusal() {
        let cached = || async { ([(header::CACHE_CONTROL, "max-age=9")], "x") };
        let own = || async { ([(header::CONTENT_SECURITY_POLICY, "default-src *")], "x") };
        let app = Router::new()
            .route("/cached", get(cached))
            .route("/own", get(own))
            .route("/error", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
            .layer(axum::middleware::from_fn(add));
        for path in ["/cached", "/own", "/error", "/none"] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            let text = |name: &str| response.headers()[name].to_str().unwrap();
            let policy = text("content-security-policy");
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
            assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
            assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
            assert_eq!(text("x-content-type-options"), "nosniff");
            assert!(!response.headers().contains_key("access-control-allow-origin"));
            let cache = if path == "/cached" { "max-age=9" } else { "no-store" };
            assert_eq!(text("cache-control"), cache, "{path}");
        }
    }
}
