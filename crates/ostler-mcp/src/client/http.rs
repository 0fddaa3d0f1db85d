//! Streamable HTTP, implemented by `rmcp`, which handles sessions and broken streams.
//!
//! No type of `rmcp` leaves this file, `bounded.rs`, `raw.rs` and `oauth/`.

use std::collections::{BTreeMap, HashMap};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use ostler_http::Certificates;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::bounded::BoundedClient;
use super::endpoint::Remote;
use super::link::{Arrival, Arrivals, CAPACITY, Carrier, Ended, Incoming, Link};
use super::oauth::Account;
use super::options::ClientOptions;
use super::raw::RawMessages;
use super::renewed::RenewedHeaders;
use crate::rpc::{self, Failure};

/// How long ending a session at the server may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// How many redirects to follow.
const MAX_REDIRECTS: usize = 10;

type Http = StreamableHttpClientTransport<BoundedClient>;
type Failed = StreamableHttpError<reqwest::Error>;

/// Prepares the connection; the first message opens it.
pub(super) fn open(
    remote: &Remote,
    options: &ClientOptions,
    account: Option<Arc<Account>>,
) -> Result<Link, Ended> {
    let (url, limit) = (parse(&remote.url)?, options.message_limit);
    let headers = headers(remote)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(limit)
        .max_concurrent_requests(CAPACITY)
        .reinit_on_expired_session(true);
    let renewed = Arc::new(RenewedHeaders::new(options.renew_headers.clone()));
    let raw = RawMessages::default();
    let client = BoundedClient { client: client()?, limit, account, renewed, raw: raw.clone() };
    let (outgoing, to_send) = mpsc::channel(CAPACITY);
    let (read, incoming) = mpsc::channel(CAPACITY);
    let http = Http::with_client(client, config);
    let carrier = Some(Carrier::spawn(carry(http, to_send, read, raw)));
    Ok(Link { outgoing, incoming: Incoming::WithReason(incoming), carrier })
}

/// Configured like `rmcp`'s own client: no idle connections, which an unread body would stall, and redirects only
/// within the same server and with the whole request, because headers may be secrets.
fn client() -> Result<reqwest::Client, Ended> {
    let policy = reqwest::redirect::Policy::custom(|attempt| {
        let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
        let first = attempt.previous().first();
        let is_same = first.is_some_and(|first| first.origin() == attempt.url().origin());
        match (keeps_body && is_same, attempt.previous().len() > MAX_REDIRECTS) {
            (false, _) => attempt.stop(),
            (true, true) => attempt.error(format!("exceeded {MAX_REDIRECTS} redirects")),
            (true, false) => attempt.follow(),
        }
    });
    let client = builder()?.pool_max_idle_per_host(0).redirect(policy);
    client.build().map_err(|error| Ended::new(chain(&error)))
}

pub(super) fn builder() -> Result<reqwest::ClientBuilder, Ended> {
    ostler_http::client(Certificates::System).map_err(|error| Ended::new(error.to_string()))
}

pub(super) fn parse(url: &str) -> Result<reqwest::Url, Ended> {
    let parsed =
        reqwest::Url::parse(url).map_err(|error| Ended::new(format!("`{url}`: {error}")))?;
    match parsed.scheme() {
        "http" | "https" => Ok(parsed),
        scheme => {
            Err(Ended::new(format!("`{url}`: the scheme must be http or https, not {scheme}")))
        }
    }
}

pub(super) fn headers(remote: &Remote) -> Result<HashMap<HeaderName, HeaderValue>, Ended> {
    read_headers(&remote.headers).map_err(Ended::new)
}

/// The headers as HTTP sends them.
pub(super) fn read_headers(
    headers: &BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let read = |(name, value): (&String, &String)| {
        // The value may be a secret and is not repeated.
        let wrong = |_| format!("the header `{name}` cannot be sent: not valid in HTTP");
        let value = HeaderValue::from_str(value).map_err(|_| wrong(()))?;
        Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(()))?, value))
    };
    headers.iter().map(read).collect()
}

/// Carries messages in one task. A request that could not be sent is answered with an error.
async fn carry(
    mut http: Http,
    mut to_send: mpsc::Receiver<Value>,
    read: Arrivals,
    raw: RawMessages,
) {
    let mut sending = FuturesUnordered::new();
    let ended = loop {
        tokio::select! {
            biased;
            () = read.closed() => break None,
            Some((id, result)) = sending.next(), if !sending.is_empty() => {
                let Err(error) = result else { continue };
                raw.forget(&id);
                match undelivered(id, &error) {
                    Ok(arrival) => read.send(Ok(arrival)).await.ok(),
                    Err(ended) => break Some(ended),
                };
            }
            message = http.receive() => {
                let Some(message) = message else { break None };
                if let Ok(message) = serde_json::to_value(message) {
                    read.send(Ok(Arrival::Message(raw.take(message)))).await.ok();
                }
            }
            message = to_send.recv() => {
                let Some(message) = message else { break None };
                let id = message.get("id").cloned();
                raw.sending(&message);
                if let Ok(message) = serde_json::from_value::<ClientJsonRpcMessage>(message) {
                    let sent = Transport::<RoleClient>::send(&mut http, message);
                    sending.push(async move { (id, sent.await) });
                }
            }
        }
    };
    if let Some(ended) = ended {
        read.send(Err(ended)).await.ok();
    }
    // Ends the session at the server, which may ignore it.
    tokio::time::timeout(GOODBYE, http.close()).await.ok();
    // A failed start first looks like a closed channel; its reason follows.
    while let Some((_, result)) = sending.next().await {
        if let Err(error) = result {
            read.send(Err(reason(&error))).await.ok();
        }
    }
}

/// What becomes of a request that the server did not accept, or the end of the connection.
fn undelivered(id: Option<Value>, error: &Failed) -> Result<Arrival, Ended> {
    match (id, reason(error)) {
        (Some(id), ended @ (Ended::NeedsAuth(_) | Ended::Unreachable(_))) if id != json!(0) => {
            Ok(Arrival::Undelivered(id, ended))
        }
        (Some(id), Ended::Other(message)) if id != json!(0) => {
            Ok(Arrival::Message(rpc::answer(&id, Err(Failure { code: -32000, message }))))
        }
        // The first request is the handshake; no caller waits for a notification.
        (_, ended) => Err(ended),
    }
}

fn reason(error: &Failed) -> Ended {
    match error {
        StreamableHttpError::AuthRequired(cause) => {
            Ended::NeedsAuth(format!("401 Unauthorized {}", cause.www_authenticate_header))
        }
        StreamableHttpError::InsufficientScope(cause) => {
            Ended::NeedsAuth(format!("403 Forbidden {}", cause.www_authenticate_header))
        }
        // This error does not appear among the causes.
        StreamableHttpError::Client(cause) if cause.is_connect() => {
            Ended::Unreachable(chain(cause))
        }
        StreamableHttpError::Client(cause) => Ended::Other(chain(cause)),
        error => Ended::Other(chain(error)),
    }
}

/// An error with its causes.
pub(super) fn chain(error: &dyn StdError) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
