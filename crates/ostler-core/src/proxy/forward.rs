//! One request to the model and its response, passed on byte by byte.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::TryStreamExt as _;
use ostler_http::Certificates;
use serde_json::{Value, json};

use super::credential::BETA;
use super::usage::{PassLimits, Refused, Scanner};
use super::{PREFIX, Proxy};

/// Headers that apply to one connection only, and those that the other side must not see.
const NOT_PASSED: [HeaderName; 12] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::HOST,
    header::COOKIE,
    header::SET_COOKIE,
];

const API_KEY: &str = "x-api-key";
/// The size limit of a request whose body is parsed, in bytes.
const LONGEST: usize = 64 << 20;

/// The HTTP client for the model.
pub(super) fn client(base: &str) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(base)
        .map_err(|error| format!("ANTHROPIC_BASE_URL is not a valid address: {error}"))?;
    let is_here = ostler_http::is_this_machine(&url);
    let certificates = match is_here && url.scheme() == "http" {
        // Without TLS no certificates are needed.
        true => Certificates::None,
        false => Certificates::System,
    };
    let unusable = |error: &dyn std::error::Error| {
        format!("cannot create an HTTP client for the model: {error}")
    };
    let probe = std::time::Duration::from_secs(30);
    let mut client = ostler_http::client(certificates)
        .map_err(|error| unusable(&error))?
        // A redirect could send the key to another host.
        .redirect(reqwest::redirect::Policy::none())
        // The engine that requested compression decompresses the response.
        .no_gzip()
        .connect_timeout(probe)
        .http2_keep_alive_interval(probe)
        .http2_keep_alive_timeout(probe);
    if is_here {
        client = client.no_proxy();
    }
    client.build().map_err(|error| unusable(&error))
}

/// Whether the model could be asked; for monitoring, without details.
pub(super) async fn health(State(proxy): State<Arc<Proxy>>) -> Response {
    // Every user of this machine can send this request, so the reason is reported only by the server itself.
    match proxy.health().await.as_str() {
        "ok" => Json(json!({"status": "ok"})).into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "no usable key"})))
            .into_response(),
    }
}

/// Passes a request on, if it comes from an engine of this server and its path is allowed.
pub(super) async fn forward(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let Some(admitted) = word(request.headers()).and_then(|word| proxy.passes.find(word)) else {
        let why = "this key does not belong to a running engine";
        return refused(StatusCode::UNAUTHORIZED, "authentication_error", why);
    };
    let target = request.uri().path_and_query().map(|target| target.as_str()).unwrap_or_default();
    let target = target.strip_prefix(PREFIX).unwrap_or_default();
    if !is_open(request.method(), target.split('?').next().unwrap_or_default()) {
        let why = "only the Messages API is available here";
        return refused(StatusCode::NOT_FOUND, "not_found_error", why);
    }
    let session = admitted.session;
    let flight = match admitted.used.begin(&proxy.limits) {
        Ok(flight) => flight,
        Err(Refused::TooMany(why)) => {
            return refused(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", &why);
        }
        // A status on which engines do not retry.
        Err(Refused::Spent(why)) => {
            tracing::warn!(session, "the model is not asked: {why}");
            return refused(StatusCode::FORBIDDEN, "permission_error", &why);
        }
    };
    let credential = match proxy.credentials.headers().await {
        Ok(credential) => credential,
        Err(why) => {
            tracing::error!(session, "the model cannot be asked: {why}");
            // Not 401, which engines report as a wrong key; and a status on which they do not retry.
            return refused(StatusCode::FORBIDDEN, "permission_error", &why);
        }
    };
    let url = format!("{}{target}", proxy.credentials.base());
    let (head, body) = request.into_parts();
    let mut headers = passed(&head.headers);
    headers.remove(API_KEY);
    headers.remove(header::AUTHORIZATION);
    // The usage is read from the response, so the response must not be compressed.
    headers.remove(header::ACCEPT_ENCODING);
    let betas = headers.remove(BETA).into_iter().chain(credential.get(BETA).cloned());
    let betas: Vec<_> = betas.filter_map(|it| it.to_str().ok().map(str::to_owned)).collect();
    headers.extend(credential);
    if !betas.is_empty()
        && let Ok(betas) = HeaderValue::from_str(&betas.join(","))
    {
        headers.insert(BETA, betas);
    }
    let body = match with_allowed_model(&proxy.limits, &head.method, body).await {
        Ok(body) => body,
        Err(why) => return refused(StatusCode::FORBIDDEN, "permission_error", &why),
    };
    let sent = proxy.client.request(head.method, url).headers(headers).body(body).send().await;
    match sent {
        Ok(answer) => {
            let (status, headers) = (answer.status(), passed(answer.headers()));
            let mut scanner = Scanner::new(flight);
            let answer = answer.bytes_stream().inspect_ok(move |bytes| scanner.read(bytes));
            (status, headers, Body::from_stream(answer)).into_response()
        }
        Err(error) => {
            // The operator's address may contain a secret.
            let error = error.without_url();
            tracing::warn!(session, %error, "the model could not be reached");
            refused(StatusCode::BAD_GATEWAY, "api_error", "the model could not be reached")
        }
    }
}

/// The body of a request. It is read as a whole only if the operator restricts the models.
async fn with_allowed_model(
    limits: &PassLimits,
    method: &Method,
    body: Body,
) -> Result<reqwest::Body, String> {
    if limits.models.is_empty() || method != Method::POST {
        return Ok(reqwest::Body::wrap_stream(body.into_data_stream()));
    }
    let bytes = axum::body::to_bytes(body, LONGEST).await;
    let bytes = bytes.map_err(|_| "the request is too long".to_owned())?;
    let request: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let model = request["model"].as_str().unwrap_or_default();
    if limits.allows(model) {
        return Ok(bytes.into());
    }
    let allowed = limits.models.join(", ");
    Err(format!(
        "the operator does not allow the model {model:?} here; allowed: {allowed} (--allow-model)"
    ))
}

/// The token that an engine sends in place of the key.
fn word(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    text(API_KEY).or_else(bearer)
}

/// The Messages API and its helpers; nothing else that the key would allow.
fn is_open(method: &Method, path: &str) -> bool {
    let is_name = |name: &str| {
        name.bytes().any(|byte| byte.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte))
    };
    match path {
        "/v1/messages" | "/v1/messages/count_tokens" => method == Method::POST,
        "/v1/models" => method == Method::GET,
        _ => method == Method::GET && path.strip_prefix("/v1/models/").is_some_and(is_name),
    }
}

/// The headers to pass on: without those about this connection, and those that `Connection` names.
fn passed(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).iter();
    let named: Vec<String> = named
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let goes_on = |name: &HeaderName| {
        !NOT_PASSED.contains(name) && !named.iter().any(|about| about == name.as_str())
    };
    let kept = headers.iter().filter(|(name, _)| goes_on(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A refusal in the format of the API, which engines read.
fn refused(status: StatusCode, kind: &str, why: &str) -> Response {
    let body = json!({"type": "error", "error": {"type": kind, "message": why}});
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with `is_open` that compares only the beginning of the path.
    #[test]
    fn only_the_messages_api_is_open() {
        let open = [
            ("POST", "/v1/messages"),
            ("POST", "/v1/messages/count_tokens"),
            ("GET", "/v1/models"),
            ("GET", "/v1/models/claude-sonnet-4-5"),
        ];
        for (method, path) in open {
            assert!(is_open(&method.parse().unwrap(), path), "{method} {path}");
        }
        let closed = [
            ("GET", "/v1/messages"),
            ("DELETE", "/v1/models/x"),
            ("POST", "/v1/messages/batches"),
            ("POST", "/v1/messages/"),
            ("POST", "/v1/messages/../organizations"),
            ("GET", "/v1/models/.."),
            ("GET", "/v1/models/../files"),
            ("GET", "/v1/models/%2e%2e"),
            ("GET", "/v1/models/"),
            ("POST", "/v1/files"),
            ("GET", "/v1/organizations/api_keys"),
            ("POST", ""),
        ];
        for (method, path) in closed {
            assert!(!is_open(&method.parse().unwrap(), path), "{method} {path}");
        }
    }

    #[test]
    fn headers_about_the_connection_are_not_passed_on() {
        let lines = [
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("host", "127.0.0.1"),
            ("anthropic-version", "2023-06-01"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
        ];
        let headers: HeaderMap = lines
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        let mut names: Vec<String> =
            passed(&headers).keys().map(|name| name.as_str().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["anthropic-version", "content-length"]);
    }
}
