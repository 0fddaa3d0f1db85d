//! The HTTP client below `rmcp`, with a size limit for every body.
//!
//! `rmcp`'s own client limits stream events but reads everything else to its end: a server that never ends its
//! response would fill the memory. Streams and session deletion are left to `rmcp`; responses to POSTs are read here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt as _};
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::oauth::Account;
use super::raw::RawMessages;
use super::renewed::RenewedHeaders;

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Headers of the protocol. `rmcp` sets its version header in the same way as the user's headers.
const RESERVED: &[&str] = &["accept", SESSION, "last-event-id"];
/// How many bytes of an unreadable response an error quotes.
const QUOTED: usize = 256;

type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client that limits every body, in bytes after decompression.
#[derive(Clone)]
pub(super) struct BoundedClient {
    pub(super) client: Client,
    pub(super) limit: usize,
    /// Where tokens come from, unless the user configured one.
    pub(super) account: Option<Arc<Account>>,
    /// Where other headers come from when the server refuses these.
    pub(super) renewed: Arc<RenewedHeaders>,
    /// What is really sent and received.
    pub(super) raw: RawMessages,
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.get_stream_with_max_sse_event_size(
            uri, session, last_event, token, headers, self.limit,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        limit: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let stream = self.authorized(token, headers, |token, headers| {
            let (uri, session, last_event) = (uri.clone(), session.clone(), last_event.clone());
            let client = &self.client;
            client
                .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, limit)
        });
        Ok(noted(stream.await?, self.raw.clone()))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        self.authorized(token, headers, |token, headers| {
            let (uri, session) = (uri.clone(), session.clone());
            self.client.delete_session(uri, session, token, headers)
        })
        .await
    }

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.authorized(token, headers, |token, headers| {
            self.post(&uri, &message, session.clone(), token, headers)
        })
        .await
    }
}

impl BoundedClient {
    /// Makes a request with the account's token and the headers. If the server refuses them, they are renewed once.
    async fn authorized<T, F>(
        &self,
        token: Option<String>,
        headers: Headers,
        attempt: impl Fn(Option<String>, Headers) -> F,
    ) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let (count, current) = self.renewed.current(&headers).await;
        let sent = match &self.account {
            Some(account) => account.token().await.map_err(unexpected)?,
            None => token,
        };
        let outcome = attempt(sent.clone(), current.clone()).await;
        if let (Err(error), Some(account)) = (&outcome, &self.account)
            && let Some(challenge) = error.auth_challenge()
        {
            account.challenged(challenge.to_owned());
        }
        let Err(StreamableHttpError::AuthRequired(refusal)) = outcome else { return outcome };
        if let Some(account) = &self.account
            && let Some(token) = account.token_after(sent.as_deref()).await.map_err(unexpected)?
        {
            return attempt(Some(token), current).await;
        }
        match self.renewed.after(count, &headers).await {
            Some(headers) => attempt(sent, headers).await,
            None => Err(StreamableHttpError::AuthRequired(refusal)),
        }
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut request = self.client.post(uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &headers {
            if RESERVED.contains(&name.as_str()) {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        let asked = match message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        let request = match asked.and_then(|id| self.raw.request(id)) {
            Some(raw) => request.json(&raw),
            None => request.json(message),
        };
        let response = request.send().await?;
        let mut answer = self.read(response, asked.is_some(), session.is_some()).await;
        // A server that refuses before it has read the request cannot name it, but it answers no other one here.
        if let (Ok(StreamableHttpPostResponse::Json(message, _)), Some(id)) = (&mut answer, asked)
            && let ServerJsonRpcMessage::Error(error) = message
        {
            error.id.get_or_insert_with(|| id.clone());
        }
        answer
    }

    /// Reads the response to a POST.
    async fn read(
        &self,
        response: Response,
        awaits_answer: bool,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        check_authorization(&response)?;
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            StatusCode::NOT_FOUND if has_session => {
                return Err(StreamableHttpError::SessionExpired);
            }
            StatusCode::TOO_MANY_REQUESTS => return Err(status_error(&response).into()),
            _ => {}
        }
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (kind, session) = (header(CONTENT_TYPE.as_str()), header(SESSION));
        let is = |wanted: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(wanted));
        if !status.is_success() {
            return self.refused(response, is(JSON), session, has_session).await;
        }
        if !awaits_answer && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if is(EVENTS) {
            let events = noted(limited(response, self.limit), self.raw.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if !is(JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let body = self.body(response).await?;
        self.raw.arrived(&body);
        match serde_json::from_slice(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            // No caller waits for an answer.
            Err(_) if !awaits_answer => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => {
                Err(unexpected(format!("not a JSON-RPC message ({error}): {}", quoted(&body))))
            }
        }
    }

    /// A response with an error status may still contain a JSON-RPC error.
    async fn refused(
        &self,
        response: Response,
        is_json: bool,
        session: Option<String>,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        if status.is_server_error() && !is_json {
            return Err(status_error(&response).into());
        }
        let failure = status.is_server_error().then(|| status_error(&response));
        let body = self.body(response).await?;
        let is_about_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_json
            && !is_about_access
            && let Ok(message @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
        {
            if has_session && status == StatusCode::BAD_REQUEST && is_about_session(&message) {
                return Err(StreamableHttpError::SessionExpired);
            }
            return Ok(StreamableHttpPostResponse::Json(message, session));
        }
        Err(match failure {
            Some(failure) => failure.into(),
            None => unexpected(format!("HTTP {status}: {}", quoted(&body))),
        })
    }

    /// Reads a body to its end, or fails at the size limit.
    async fn body(&self, response: Response) -> Result<Vec<u8>, Failed> {
        let (mut stream, mut body) = (response.bytes_stream(), Vec::new());
        while let Some(bytes) = stream.next().await {
            let bytes = bytes?;
            if body.len() + bytes.len() > self.limit {
                return Err(unexpected(too_large(self.limit)));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }
}

/// Whether an error says that the server does not know the session, after a restart. It should answer 404; servers on
/// the official SDK answer 400 with this text.
fn is_about_session(message: &ServerJsonRpcMessage) -> bool {
    let ServerJsonRpcMessage::Error(error) = message else { return false };
    error.error.code.0 == -32000 && error.error.message.to_lowercase().contains("session")
}

/// The same events; their messages are noted as they arrive.
fn noted(
    events: BoxStream<'static, Result<Sse, SseError>>,
    raw: RawMessages,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let note = move |event: &Result<Sse, SseError>| {
        if let Ok(Sse { data: Some(data), .. }) = event {
            raw.arrived(data.as_bytes());
        }
    };
    events.inspect(note).boxed()
}

fn too_large(limit: usize) -> String {
    format!("the answer is larger than {limit} bytes, the limit for one message")
}

fn unexpected(text: String) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text))
}

fn quoted(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(QUOTED)])
}

fn status_error(response: &Response) -> HttpStatusError {
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    HttpStatusError::new(response.status().as_u16(), after.map(str::to_owned))
}

/// A server that requires authentication says how in a header. Some older ones only refuse.
fn check_authorization(response: &Response) -> Result<(), Failed> {
    let challenge = response.headers().get(WWW_AUTHENTICATE);
    let challenge = challenge.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    match (response.status(), challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => {
            let challenge = challenge.unwrap_or_default();
            Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            // The scope is read out of the challenge when the user signs in again.
            let missing = InsufficientScopeError::new(challenge, None);
            Err(StreamableHttpError::InsufficientScope(missing))
        }
        _ => Ok(()),
    }
}

/// The events of a stream, each within the size limit, which counts from one empty line to the next.
fn limited(response: Response, limit: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let (mut n_bytes, mut is_line_empty, mut is_after_return) = (0_usize, true, false);
    let bytes = response.bytes_stream().map(move |bytes| {
        let bytes = bytes.map_err(io::Error::other)?;
        for byte in &bytes {
            n_bytes += 1;
            match byte {
                // The LF of a CRLF.
                b'\n' if is_after_return => {}
                b'\n' | b'\r' if is_line_empty => n_bytes = 0,
                b'\n' | b'\r' => is_line_empty = true,
                _ => is_line_empty = false,
            }
            is_after_return = *byte == b'\r';
            if n_bytes > limit {
                return Err(io::Error::other(too_large(limit)));
            }
        }
        Ok(bytes)
    });
    SseStream::from_bytes_stream(bytes).boxed()
}
