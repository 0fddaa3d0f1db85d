//! The Messages API over HTTP, streaming.

use std::sync::Once;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use ostler_proto::api::StreamEvent;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::sse::SseDecoder;
use super::{EventStream, Model, ModelError, ModelEvent, Request};

/// Where the API is unless `ANTHROPIC_BASE_URL` says otherwise.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// How the API is reached.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// The address, possibly with a path, without `/v1/messages`.
    pub base_url: String,
    /// How to prove who we are.
    pub credential: Credential,
    /// The model to ask for.
    pub model: String,
}

/// How to prove who we are. Never shown.
#[derive(Clone)]
pub enum Credential {
    /// `x-api-key`.
    Key(String),
    /// `Authorization: Bearer`.
    Token(String),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key([hidden])",
            Self::Token(_) => "Token([hidden])",
        })
    }
}

/// A model behind the Messages API.
#[derive(Clone, Debug)]
pub struct ApiModel {
    client: reqwest::Client,
    url: String,
    model: String,
}

impl ApiModel {
    /// Prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// When the credential cannot stand in a header, or the system's certificates cannot be read.
    pub fn new(config: ApiConfig) -> Result<Self, ModelError> {
        install_crypto_provider();
        let client = reqwest::Client::builder()
            .default_headers(headers(&config.credential)?)
            .user_agent(concat!("ostler/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(connection)?;
        let url = format!("{}/v1/messages", config.base_url.trim_end_matches('/'));
        Ok(Self { client, url, model: config.model })
    }
}

impl Model for ApiModel {
    fn name(&self) -> &str {
        &self.model
    }

    fn respond(&self, request: Request) -> EventStream {
        let sent = self.client.post(&self.url).json(&request).send();
        let events = stream::once(async move {
            let response = sent.await.map_err(connection)?;
            if !response.status().is_success() {
                return Err(refusal(response).await);
            }
            Ok(events(response.bytes_stream().map_err(connection).boxed()))
        });
        Box::pin(events.try_flatten())
    }
}

/// The events of a response body, one error at most, and that last.
fn events(
    body: BoxStream<'static, Result<bytes::Bytes, ModelError>>,
) -> impl Stream<Item = Result<ModelEvent, ModelError>> {
    let mut decoder = SseDecoder::default();
    body.map(move |bytes| {
        let data =
            decoder.push(&bytes?).map_err(|error| ModelError::Protocol(error.to_string()))?;
        Ok(stream::iter(data.into_iter().map(|data| read_event(&data))))
    })
    .try_flatten()
}

fn read_event(data: &str) -> Result<ModelEvent, ModelError> {
    let event = serde_json::from_str(data)
        .map_err(|error| ModelError::Protocol(format!("{error}: {data:.200}")))?;
    match event {
        // The status line was long sent when this happens; these are the codes the API uses for them.
        StreamEvent::Error(event) => Err(ModelError::Status {
            status: if event.error.r#type == "overloaded_error" { 529 } else { 500 },
            kind: event.error.r#type,
            message: event.error.message,
        }),
        event => Ok(ModelEvent::Stream(event)),
    }
}

async fn refusal(response: reqwest::Response) -> ModelError {
    let status = response.status().as_u16();
    let body = response.text().await.unwrap_or_default();
    let error = serde_json::from_str::<Value>(&body).unwrap_or_default();
    let text = |field: &str| error["error"][field].as_str().map(str::to_owned);
    ModelError::Status {
        status,
        kind: text("type").unwrap_or_else(|| "unknown".to_owned()),
        message: text("message").unwrap_or_else(|| body.chars().take(500).collect()),
    }
}

fn headers(credential: &Credential) -> Result<HeaderMap, ModelError> {
    let (name, value) = match credential {
        Credential::Key(key) => (HeaderName::from_static("x-api-key"), key.clone()),
        Credential::Token(token) => (header::AUTHORIZATION, format!("Bearer {token}")),
    };
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
        ModelError::Connection("the API key contains characters a header cannot carry".to_owned())
    })?;
    value.set_sensitive(true);
    let version =
        (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
    Ok(HeaderMap::from_iter([(name, value), version]))
}

fn connection(error: reqwest::Error) -> ModelError {
    // reqwest's own text stops at "error sending request"; what helps is at the end of the chain.
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    ModelError::Connection(text)
}

/// reqwest brings no cryptography of its own here, and panics without it.
fn install_crypto_provider() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Fails only when the program has installed one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
