//! The older HTTP transport: one event stream brings messages, POSTs send them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use ostler_proto::codec::SseDecoder;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;
use tokio::sync::mpsc;

use super::endpoint::Remote;
use super::http;
use super::link::{Arrival, Arrivals, CAPACITY, Carrier, Ended, Incoming, Link};
use super::oauth::Account;
use crate::rpc::{self, Failure};

/// Opens the event stream.
pub(super) async fn open(
    remote: &Remote,
    limit: usize,
    account: Option<Arc<Account>>,
) -> Result<Link, Ended> {
    let url = http::parse(&remote.url)?;
    let mut headers: HeaderMap = http::headers(remote)?.into_iter().collect();
    if let Some(token) = token(account.as_deref()).await? {
        headers.insert(AUTHORIZATION, token);
    }
    let client = http::builder()?
        .default_headers(headers)
        // Headers may be secrets: they go to the configured server only.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(30))
        .build()
        .map_err(|error| Ended::new(error.to_string()))?;
    let stream = client.get(url.clone()).header(ACCEPT, "text/event-stream").send().await;
    let stream = accepted(stream).inspect_err(|ended| note(account.as_deref(), ended))?;
    let (outgoing, to_send) = mpsc::channel(CAPACITY);
    let (read, incoming) = mpsc::channel(CAPACITY);
    let carry = async move {
        if let Err(ended) = carry(&client, &url, stream, to_send, &read, limit).await {
            read.send(Err(ended)).await.ok();
        }
    };
    let carrier = Some(Carrier::spawn(carry));
    Ok(Link { outgoing, incoming: Incoming::WithReason(incoming), carrier })
}

/// The header with the account's token. A stream that lasts longer than its token ends with it.
async fn token(account: Option<&Account>) -> Result<Option<HeaderValue>, Ended> {
    let Some(account) = account else { return Ok(None) };
    let Some(token) = account.token().await.map_err(Ended::new)? else { return Ok(None) };
    let invalid = |_| Ended::new("its token cannot be sent: not valid in HTTP");
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(invalid)?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn note(account: Option<&Account>, ended: &Ended) {
    if let (Some(account), Ended::NeedsAuth(challenge)) = (account, ended) {
        account.challenged(challenge.clone());
    }
}

async fn carry(
    client: &reqwest::Client,
    url: &Url,
    stream: Response,
    mut to_send: mpsc::Receiver<Value>,
    read: &Arrivals,
    limit: usize,
) -> Result<(), Ended> {
    let mut events = SseDecoder::new(limit);
    let mut bytes = stream.bytes_stream();
    let mut sending = FuturesUnordered::new();
    let mut target: Option<Url> = None;
    loop {
        tokio::select! {
            () = read.closed() => return Ok(()),
            Some((id, sent)) = sending.next(), if !sending.is_empty() => {
                let Err(ended) = sent else { continue };
                read.send(Ok(undelivered(id, ended)?)).await.ok();
            }
            chunk = bytes.next() => {
                let chunk = chunk.ok_or_else(|| Ended::new("the stream of events ended"))?;
                let chunk = chunk.map_err(|error| Ended::new(format!("the stream broke: {error}")))?;
                let events = events.push(&chunk);
                let events = events.map_err(|error| Ended::new(format!("it sent {error}")))?;
                for event in events {
                    match event.name.as_deref() {
                        Some("endpoint") => target = Some(same_origin(url, event.data.trim())?),
                        None | Some("message") => if let Ok(message) = serde_json::from_str(&event.data) {
                            read.send(Ok(Arrival::Message(message))).await.ok();
                        },
                        _ => {}
                    }
                }
            }
            // Nothing can be sent before the server has named the address.
            message = to_send.recv(), if target.is_some() => {
                let (Some(message), Some(target)) = (message, &target) else { return Ok(()) };
                let id = message.get("id").cloned();
                let sent = client.post(target.clone()).json(&message).send();
                sending.push(async move { (id, accepted(sent.await).map(drop)) });
            }
        }
    }
}

/// One refused request does not end the connection, unless it is the handshake.
fn undelivered(id: Option<Value>, ended: Ended) -> Result<Arrival, Ended> {
    match (id, ended) {
        (Some(id), Ended::Other(message)) => {
            Ok(Arrival::Message(rpc::answer(&id, Err(Failure { code: -32000, message }))))
        }
        (Some(id), ended @ (Ended::NeedsAuth(_) | Ended::Unreachable(_))) if id != 0 => {
            Ok(Arrival::Undelivered(id, ended))
        }
        (_, ended) => Err(ended),
    }
}

/// The address for messages. It must be on the same server, because our headers are sent along.
fn same_origin(url: &Url, target: &str) -> Result<Url, Ended> {
    let target = url
        .join(target)
        .map_err(|error| Ended::new(format!("it sent an invalid address for messages: {error}")))?;
    match target.origin() == url.origin() {
        true => Ok(target),
        false => {
            Err(Ended::new(format!("it wants messages to be sent to another server, {target}")))
        }
    }
}

fn accepted(response: reqwest::Result<Response>) -> Result<Response, Ended> {
    let response = response.map_err(|error| match error.is_connect() {
        true => Ended::Unreachable(http::chain(&error)),
        false => Ended::new(http::chain(&error)),
    })?;
    match response.status() {
        status if status.is_success() => Ok(response),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok()).unwrap_or_default();
            Err(Ended::NeedsAuth(format!("{status} {challenge}").trim().to_owned()))
        }
        status => Err(Ended::new(format!("the server answered {status}"))),
    }
}
