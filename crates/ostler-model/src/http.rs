//! The Messages API over HTTP: one attempt at a request, with or without a stream.

use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use ostler_proto::api::{Message, StreamEvent};
use ostler_proto::codec::SseDecoder;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, Url};
use serde_json::Value;
use tokio::time::Instant;

use super::alias::LARGE_CONTEXT;
use super::config::{Header, Timeouts, read_base_url};
use super::credential::Keyring;
use super::retry::{self, FailedAttempt};
use super::size::ResponseSize;
use super::{ApiConfig, MAX_RESPONSE_BYTES, ModelError, ModelEvent, Request, client};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Api {
    client: Arc<reqwest::Client>,
    /// Of every request.
    headers: HeaderMap,
    url: Url,
    pub(crate) config: ApiConfig,
    pub(crate) keyring: Keyring,
    /// Models that the fallback replaces for now.
    given_up: Mutex<HashSet<String>>,
}

impl Api {
    /// Prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// When the address, a credential or a header is not valid, or the system's certificates
    /// cannot be read.
    pub(crate) fn new(config: ApiConfig) -> Result<Self, ModelError> {
        let mut url = read_base_url(&config.base_url)
            .map_err(|error| ModelError::Connection(error.to_string()))?;
        let (client, headers) = (client::for_address(&url)?, headers(&config)?);
        url.set_path(&format!("{}/v1/messages", url.path().trim_end_matches('/')));
        let keyring = Keyring::new(&config.credential, config.renewal.clone(), &config.headers)?;
        let given_up = Mutex::default();
        Ok(Self { client, headers, url, config, keyring, given_up })
    }
}

impl Api {
    /// A prompt begins: replaced models are tried again.
    pub(crate) fn prompt_began(&self) {
        self.given_up.lock().clear();
    }
}

/// The outcome of one attempt: events, then at most one failure.
pub(crate) type Attempt = BoxStream<'static, Result<ModelEvent, FailedAttempt>>;

impl Api {
    /// Sends the request once. `patience` multiplies the timeout for the first byte.
    pub(crate) fn send(&self, request: &Request, credential: HeaderMap, patience: u32) -> Attempt {
        let mut headers = self.headers.clone();
        headers.extend(credential);
        // Checked when the client was made, for all betas but those that are named here.
        if let Some(betas) = self.betas_for(&request.model)
            && let Ok(betas) = HeaderValue::try_from(betas)
        {
            headers.insert("anthropic-beta", betas);
        }
        let sent = self.client.post(self.url.clone()).headers(headers).json(request);
        let timeouts = self.config.timeouts;
        if request.stream {
            let deadline = Instant::now() + timeouts.first_byte.saturating_mul(patience);
            let body = async move { open(sent, deadline, timeouts).await };
            stream::once(body).try_flatten().boxed()
        } else {
            let (sent, deadline) = (sent.timeout(timeouts.whole), Instant::now() + timeouts.whole);
            stream::once(whole(sent, deadline)).try_flatten().boxed()
        }
    }

    /// The betas of a request for this model, if it needs further ones.
    fn betas_for(&self, model: &str) -> Option<String> {
        let mut betas = betas(&self.config);
        let is_missing = !betas.iter().any(|beta| beta.contains(LARGE_CONTEXT_BETA));
        (model.ends_with(LARGE_CONTEXT) && is_missing).then(|| {
            betas.push(LARGE_CONTEXT_BETA.to_owned());
            betas.join(",")
        })
    }

    /// The fallback for this model, if there is one: the next in the list, or the first for a model that is not in it.
    pub(crate) fn fallback_for(&self, model: &str) -> Option<&str> {
        let list = &self.config.fallback_models;
        let after = list.iter().position(|fallback| fallback == model).map_or(0, |at| at + 1);
        list[after..].iter().map(String::as_str).find(|fallback| *fallback != model)
    }

    pub(crate) fn give_up(&self, model: &str) {
        let mut given_up = self.given_up.lock();
        given_up.insert(model.to_owned());
    }

    pub(crate) fn is_given_up(&self, model: &str) -> bool {
        self.given_up.lock().contains(model)
    }
}

async fn open(
    sent: RequestBuilder,
    deadline: Instant,
    timeouts: Timeouts,
) -> Result<Attempt, FailedAttempt> {
    let response = tokio::time::timeout_at(deadline, sent.send())
        .await
        .map_err(|_| silent("no answer in time"))?
        .map_err(connection)?;
    let response = accepted(response, deadline).await?;
    let named = name(&response).map(ModelEvent::Named).map(Ok);
    let reader = Reader {
        body: response.bytes_stream().boxed(),
        decoder: SseDecoder::new(MAX_RESPONSE_BYTES),
        data: VecDeque::new(),
        size: ResponseSize::default(),
        deadline,
        content_deadline: Instant::now() + timeouts.content,
        timeouts,
    };
    let events = stream::unfold(reader, async |mut reader| {
        let event = reader.next().await?;
        Some((event.map(ModelEvent::Stream), reader))
    });
    Ok(stream::iter(named).chain(events).boxed())
}

async fn whole(sent: RequestBuilder, deadline: Instant) -> Result<Attempt, FailedAttempt> {
    let response = accepted(sent.send().await.map_err(connection)?, deadline).await?;
    let named = name(&response).map(ModelEvent::Named);
    let body = read_whole(response).await?;
    let message: Message =
        serde_json::from_slice(&body).map_err(|error| ModelError::Protocol(error.to_string()))?;
    let events = named.into_iter().chain([ModelEvent::Whole(message)]);
    Ok(stream::iter(events.map(Ok)).boxed())
}

/// Reads a body to its end, or fails at the size limit, which counts decompressed bytes.
async fn read_whole(response: Response) -> Result<Vec<u8>, FailedAttempt> {
    let mut size = ResponseSize::default();
    let (mut body, mut read) = (response.bytes_stream(), Vec::new());
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(connection)?;
        size.add_content(bytes.len())?;
        read.extend_from_slice(&bytes);
    }
    Ok(read)
}

/// The API's id of the request.
fn name(response: &Response) -> Option<String> {
    response.headers().get("request-id")?.to_str().ok().map(str::to_owned)
}

/// Reads events out of a response body.
struct Reader {
    body: BoxStream<'static, Result<bytes::Bytes, reqwest::Error>>,
    decoder: SseDecoder,
    /// Data of received events that the caller has not read yet.
    data: VecDeque<String>,
    size: ResponseSize,
    /// The deadline of the next byte.
    deadline: Instant,
    /// The deadline of the next event with content.
    content_deadline: Instant,
    timeouts: Timeouts,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<StreamEvent, FailedAttempt>> {
        loop {
            if let Some(data) = self.data.pop_front() {
                return Some(self.event(&data));
            }
            // Also checked here: with frequent pings, the timer would never fire.
            if Instant::now() >= self.content_deadline {
                return Some(Err(self.stalled()));
            }
            match self.read().await? {
                Ok(data) => self.data.extend(data),
                Err(failure) => return Some(Err(failure)),
            }
        }
    }

    fn event(&mut self, data: &str) -> Result<StreamEvent, FailedAttempt> {
        let event = read_event(data)?;
        self.size.add(&event, data.len())?;
        if !matches!(event, StreamEvent::Ping(_) | StreamEvent::Unknown(_)) {
            self.content_deadline = Instant::now() + self.timeouts.content;
        }
        Ok(event)
    }

    async fn read(&mut self) -> Option<Result<Vec<String>, FailedAttempt>> {
        let deadline = self.deadline.min(self.content_deadline);
        let Ok(bytes) = tokio::time::timeout_at(deadline, self.body.next()).await else {
            return Some(Err(match Instant::now() >= self.content_deadline {
                true => self.stalled(),
                false => silent("nothing more came"),
            }));
        };
        self.deadline = Instant::now() + self.timeouts.idle;
        Some(match bytes? {
            Ok(bytes) => self.decode(&bytes),
            Err(error) => Err(connection(error)),
        })
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<Vec<String>, FailedAttempt> {
        self.size.add_raw(bytes.len())?;
        let events = self.decoder.push(bytes);
        let events = events.map_err(|error| ModelError::TooLarge(error.to_string()))?;
        // The API repeats the event's name in its data.
        Ok(events.into_iter().map(|event| event.data).collect())
    }

    fn stalled(&self) -> FailedAttempt {
        let seconds = self.timeouts.content.as_secs_f64();
        silent(&format!(
            "the model sent nothing but pings for {seconds} s (OSTLER_CONTENT_TIMEOUT_MS sets this limit)"
        ))
    }
}

fn read_event(data: &str) -> Result<StreamEvent, FailedAttempt> {
    let event = serde_json::from_str(data)
        .map_err(|error| ModelError::Protocol(format!("{error}: {data:.200}")))?;
    match event {
        StreamEvent::Error(event) => {
            let (kind, message) = (event.error.r#type, event.error.message);
            Err(ModelError::Status { status: status_of(&kind), kind, message }.into())
        }
        event => Ok(event),
    }
}

/// The status code that the API uses for a type of error. An error inside a stream has no status line.
fn status_of(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

/// The most bytes that are read of an error response. The API's are short; a proxy's may be a whole page.
const MAX_REFUSAL: usize = 64 * 1024;

/// The text of an error response, as far as it arrived before the deadline. The status is known already.
async fn words(response: Response, deadline: Instant) -> String {
    let mut body = response.bytes_stream();
    let mut words = Vec::new();
    while let Ok(Some(Ok(bytes))) = tokio::time::timeout_at(deadline, body.next()).await {
        words.extend_from_slice(&bytes);
        if words.len() > MAX_REFUSAL {
            words.truncate(MAX_REFUSAL);
            break;
        }
    }
    String::from_utf8_lossy(&words).into_owned()
}

/// The response, unless its status is an error.
async fn accepted(response: Response, deadline: Instant) -> Result<Response, FailedAttempt> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let header = |name: &str| response.headers().get(name)?.to_str().ok();
    let milliseconds = header("retry-after-ms").and_then(|value| value.trim().parse::<f64>().ok());
    let retry_after = milliseconds
        .and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok())
        .or_else(|| retry::read_retry_after(header("retry-after")?, SystemTime::now()));
    let should_retry = header("x-should-retry").and_then(|value| value.parse().ok());
    let body = words(response, deadline).await;
    let error = serde_json::from_str::<Value>(&body).unwrap_or_default();
    let text = |field: &str| error["error"][field].as_str().map(str::to_owned);
    let error = ModelError::Status {
        status: status.as_u16(),
        kind: text("type").unwrap_or_else(|| "unknown".to_owned()),
        message: text("message").unwrap_or_else(|| body.chars().take(500).collect()),
    };
    Err(FailedAttempt { error, retry_after, should_retry })
}

/// The documented beta for a context window of a million tokens.
const LARGE_CONTEXT_BETA: &str = "context-1m-2025-08-07";

/// The betas of every request.
fn betas(config: &ApiConfig) -> Vec<String> {
    let is_beta =
        |header: &&Header| header.parsed().is_some_and(|(name, _)| name == "anthropic-beta");
    let named = config.headers.iter().filter(is_beta).map(|header| header.value.clone());
    config.betas.iter().cloned().chain(named).collect()
}

fn headers(config: &ApiConfig) -> Result<HeaderMap, ModelError> {
    let refused = |what: &str| {
        ModelError::Connection(format!("{what} contains characters that are not valid in a header"))
    };
    let ours = HeaderValue::from_static;
    let mut headers = HeaderMap::from_iter([
        (header::USER_AGENT, ours(concat!("ostler/", env!("CARGO_PKG_VERSION")))),
        (HeaderName::from_static("anthropic-version"), ours("2023-06-01")),
    ]);
    for header in &config.headers {
        let (name, value) =
            header.parsed().ok_or_else(|| refused(&format!("the header {:?}", header.name)))?;
        // Betas are joined below; the body is always JSON.
        if name != "anthropic-beta" && name != header::CONTENT_TYPE {
            headers.insert(name, value);
        }
    }
    let betas = betas(config);
    if !betas.is_empty() {
        let betas = HeaderValue::from_str(&betas.join(",")).map_err(|_| refused("a beta"))?;
        headers.insert("anthropic-beta", betas);
    }
    Ok(headers)
}

fn silent(what: &str) -> FailedAttempt {
    ModelError::Connection(what.to_owned()).into()
}

fn connection(error: reqwest::Error) -> FailedAttempt {
    // A request that could not be built will fail the next time too.
    let should_retry = error.is_builder().then_some(false);
    FailedAttempt { should_retry, ..ModelError::no_connection(&error).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Credential;

    #[test]
    fn the_path_of_an_address_stays_and_slashes_at_its_end_do_not_matter() {
        for (base_url, expected) in [
            ("https://x", "https://x/v1/messages"),
            ("https://x/", "https://x/v1/messages"),
            ("https://x/a/b", "https://x/a/b/v1/messages"),
            ("https://x/a//", "https://x/a/v1/messages"),
            ("http://x:8080/a%20b", "http://x:8080/a%20b/v1/messages"),
        ] {
            let config = ApiConfig::new(base_url, Credential::Key("k".into()), "m");
            assert_eq!(Api::new(config).unwrap().url.as_str(), expected);
        }
    }

    #[test]
    fn a_value_that_is_not_valid_in_a_header_is_refused_and_not_shown() {
        let mut config = ApiConfig::new("https://x", Credential::Key("se\ncret".into()), "m");
        let error = Api::new(config.clone()).unwrap_err().to_string();
        assert!(error.contains("API key") && !error.contains("cret"), "{error}");
        config.credential = Credential::Key("k".into());
        config.headers.push(Header { name: "x-a".into(), value: "se\ncret".into() });
        let error = Api::new(config).unwrap_err().to_string();
        assert!(error.contains("x-a") && !error.contains("cret"), "{error}");
    }
}
