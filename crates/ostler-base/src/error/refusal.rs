//! The one format in which the server refuses a request: `{"error": {"code", "message", "hint"?, "field"?}}`.
//!
//! A code is for programs and never changes. A message is for people and says what is wrong. A hint says what to do.
//! Causes inside the server go to its log and are never part of a response.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The body of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    /// For programs: lower-case words joined by underscores.
    pub code: Cow<'static, str>,
    /// For people.
    pub message: String,
    /// What the caller can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The invalid field of the request, as a path: `inputValues.url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// A refusal that becomes an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({})", .detail.message, .status)]
pub struct ApiError {
    status: StatusCode,
    detail: Box<ErrorDetail>,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// A refusal with any status.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let detail = ErrorDetail {
            code: Cow::Borrowed(code),
            message: message.into(),
            hint: None,
            field: None,
        };
        Self { status, detail: Box::new(detail), retry_after: None }
    }

    /// The request is not valid HTTP or JSON.
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A field has an invalid value.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", message).field(field)
    }

    /// The caller is unknown.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    /// The caller is known and lacks the permission.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// The thing does not exist, or the caller may not see it: the two must look the same.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The thing is not, or no longer, in the state that the request requires.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// The caller sends too many or too large requests.
    pub fn too_many(message: impl Into<String>, retry_after: Duration) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message);
        Self { retry_after: Some(retry_after), ..error }
    }

    /// The server itself failed. The cause belongs in the log, not in the response.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the server could not do this; see its log for the cause",
        )
    }

    /// The server cannot do this now, but may be able to later.
    pub fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
    }

    /// Adds what the caller can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.detail.hint = Some(hint.into());
        self
    }

    /// Adds the name of the invalid field.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.detail.field = Some(field.into());
        self
    }

    /// Whether the same request may succeed later although nothing is changed.
    pub fn is_passing(&self) -> bool {
        self.status.is_server_error()
            || self.status == StatusCode::TOO_MANY_REQUESTS
            || matches!(self.detail.code.as_ref(), "held_elsewhere" | "changed")
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn detail(&self) -> &ErrorDetail {
        &self.detail
    }

    /// The body, for channels other than HTTP responses, such as a WebSocket.
    pub fn body(&self) -> ErrorBody {
        ErrorBody { error: (*self.detail).clone() }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            // Rounded up: a client that comes back earlier is refused again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A JSON body. An unreadable one is refused as an [`ApiError`].
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let axum::Json(Object(value)) = axum::Json::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// A JSON body that may be missing. A missing one counts as `T::default()`.
pub struct OptionalBody<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts.clone(), body);
        let bytes = Bytes::from_request(request, state).await.map_err(JsonRejection::from)?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        let request = Request::from_parts(parts, bytes.into());
        JsonBody::from_request(request, state).await.map(|JsonBody(value)| Self(value))
    }
}

/// A value that must be a JSON object. Derived deserializers would also accept an array with the fields in order.
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// The parameters of the path. Unreadable ones are refused as an [`ApiError`].
pub struct PathOf<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let axum::extract::Path(value) =
            axum::extract::Path::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}

/// The query string. An unreadable one is refused as an [`ApiError`].
pub struct QueryOf<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let axum::extract::Query(value) =
            axum::extract::Query::from_request_parts(parts, state).await?;
        Ok(Self(value))
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        let code = match &rejection {
            JsonRejection::JsonDataError(_) => "invalid_body",
            JsonRejection::JsonSyntaxError(_) => "not_json",
            JsonRejection::MissingJsonContentType(_) => "json_only",
            _ if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => "body_too_large",
            _ => "unreadable_body",
        };
        Self::new(rejection.status(), code, rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        // A route that extracts parameters its path does not have is a bug of the server.
        if rejection.status().is_server_error() {
            return Self::internal();
        }
        Self::new(rejection.status(), "invalid_path", rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), "invalid_query", rejection.body_text())
    }
}

/// Answers requests to unknown paths.
pub async fn no_such_path(request: Request) -> ApiError {
    ApiError::not_found(format!("there is nothing at {}", shown(request.uri().path())))
        .hint("see /openapi.json for the list of paths")
}

/// Answers requests with a method that the path does not support.
pub async fn no_such_method(request: Request) -> ApiError {
    let message =
        format!("{} is not supported for {}", request.method(), shown(request.uri().path()));
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// The beginning of a text from a client, short enough to repeat in a response.
pub fn shown(text: &str) -> String {
    const LONGEST: usize = 100;
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let short: String = text.chars().take(LONGEST).map(clean).collect();
    if text.chars().nth(LONGEST).is_some() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn answered(error: ApiError) -> (StatusCode, Value, axum::http::HeaderMap) {
        let response = error.into_response();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap(), headers)
    }

    #[tokio::test]
    async fn every_refusal_has_the_same_format() {
        let error = ApiError::invalid("inputValues.url", "url is required").hint("add it");
        let (status, body, headers) = answered(error).await;
        assert_eq!(status, 422);
        assert_eq!(
            body,
            json!({"error": {
                "code": "invalid_field",
                "message": "url is required",
                "hint": "add it",
                "field": "inputValues.url",
            }})
        );
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["cache-control"], "no-store");
        let (_, body, _) = answered(ApiError::not_found("no run 7")).await;
        assert_eq!(body, json!({"error": {"code": "not_found", "message": "no run 7"}}));
    }

    #[tokio::test]
    async fn a_refusal_says_how_to_authenticate_or_when_to_retry() {
        let (status, _, headers) = answered(ApiError::unauthenticated("no token")).await;
        assert_eq!(
            (status.as_u16(), &headers["www-authenticate"]),
            (401, &"Bearer".parse().unwrap())
        );
        let wait = Duration::from_millis(1_200);
        let (status, _, headers) = answered(ApiError::too_many("slowly", wait)).await;
        assert_eq!((status.as_u16(), headers["retry-after"].to_str().unwrap()), (429, "2"));
    }

    #[tokio::test]
    async fn an_unreadable_body_is_refused_in_the_same_format() {
        #[derive(Deserialize)]
        struct Wanted {
            #[expect(dead_code, reason = "only its absence matters")]
            name: String,
        }
        let check = async |kind: &'static str, body: &'static str, code: &str| {
            let request =
                Request::post("/").header("content-type", kind).body(body.into()).unwrap();
            let error = JsonBody::<Wanted>::from_request(request, &()).await.err().unwrap();
            assert_eq!(error.detail().code, code, "{body}");
            assert!(error.status().is_client_error());
        };
        check("application/json", "{}", "invalid_body").await;
        check("application/json", r#"["by its place"]"#, "invalid_body").await;
        check("application/json", "{", "not_json").await;
        check("text/plain", "{}", "json_only").await;
    }

    #[test]
    fn long_text_of_a_client_is_cut_before_it_is_repeated() {
        assert_eq!(shown("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(shown(&"é".repeat(101)), format!("{}…", "é".repeat(100)));
    }
}
