//! Going to a page: over checked addresses only, within bounds of time, size and redirects.

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use ostler_engine::tool::{ToolCx, ToolError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Proxy, Response, StatusCode, Url, redirect};

use super::{location, page, proxy};

/// What a visit may cost.
pub(super) struct Limits {
    pub(super) time: Duration,
    pub(super) bytes: usize,
    pub(super) redirects: usize,
}

pub(super) const LIMITS: Limits =
    Limits { time: Duration::from_secs(30), bytes: 10 * 1024 * 1024, redirects: 5 };
const TO_CONNECT: Duration = Duration::from_secs(10);

/// What came of a visit.
pub(super) struct Visit {
    /// Where it ended, after redirects.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) found: Found,
}

pub(super) enum Found {
    Page {
        content_type: String,
        bytes: Vec<u8>,
        /// The page is longer than is read.
        is_cut: bool,
    },
    /// The page is on another host, which nobody has allowed yet.
    Elsewhere(Url),
}

/// Visits a page.
pub(super) async fn visit(cx: &ToolCx, url: Url, limits: &Limits) -> Result<Visit, ToolError> {
    let host = location::host(&url);
    tokio::time::timeout(limits.time, go(cx, url, limits)).await.unwrap_or_else(|_| {
        let seconds = limits.time.as_secs_f32();
        Err(ToolError::Failed(format!("{host} did not answer within {seconds} s")))
    })
}

async fn go(cx: &ToolCx, mut url: Url, limits: &Limits) -> Result<Visit, ToolError> {
    // One host, one look-up: redirects to other hosts are not followed.
    let client = client(cx, &url).await?;
    for _ in 0..=limits.redirects {
        let sent = client.get(url.clone()).header(ACCEPT, page::ACCEPTED).send().await;
        let response = sent.map_err(|error| failed(&url, error))?;
        let status = response.status();
        match next(&url, &response)? {
            None => {
                let found = read(response, limits.bytes).await?;
                return Ok(Visit { url, status, found });
            }
            Some(to) if is_same_place(&url, &to) => url = to,
            Some(to) => return Ok(Visit { url, status, found: Found::Elsewhere(to) }),
        }
    }
    Err(ToolError::Failed(format!("{url} redirects more than {} times", limits.redirects)))
}

/// A client that can reach the host of this address and no other.
async fn client(cx: &ToolCx, url: &Url) -> Result<Client, ToolError> {
    // Another part of the program may have done it already; then nothing happens.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("ostler/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(TO_CONNECT);
    // What is inside is not the proxy's to reach.
    let variable = |name: &str| cx.env.get(name);
    let is_inside = location::is_inside(&location::host(url));
    let proxy = if is_inside { None } else { proxy::of(url, variable) };
    let client = match proxy {
        None => client.dns_resolver(Arc::new(Pinned(location::resolve(cx, url).await?))),
        Some(proxy) => {
            may_go_through_proxy(cx, url).await?;
            let proxy = Proxy::all(&proxy).map_err(|error| {
                ToolError::Failed(format!("the proxy {proxy} of the environment: {error}"))
            })?;
            client.proxy(proxy)
        }
    };
    client.build().map_err(|error| ToolError::Failed(format!("no connection: {error}")))
}

/// A proxy looks names up by itself, so the address that it will find is not known here. What is known is checked:
/// addresses as such, and what the name means here, if it means anything.
async fn may_go_through_proxy(cx: &ToolCx, url: &Url) -> Result<(), ToolError> {
    match location::resolve(cx, url).await {
        Err(refused @ ToolError::Refused(_)) => Err(refused),
        // Behind a proxy names of the outside often mean nothing.
        Ok(_) | Err(ToolError::Failed(_)) => Ok(()),
    }
}

/// The addresses that were checked, whatever name is asked for.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Where a response sends us, if it does.
fn next(url: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(to) = response.headers().get(LOCATION).filter(|_| is_redirect) else {
        return Ok(None);
    };
    let to = to.to_str().ok().and_then(|to| url.join(to).ok());
    let to = to.ok_or_else(|| ToolError::Failed(format!("{url} redirects to nowhere")))?;
    location::read(to.as_str()).map(Some)
}

/// Whether a redirect stays where permission was given for, and as safe as it was.
fn is_same_place(from: &Url, to: &Url) -> bool {
    let is_downgrade = from.scheme() == "https" && to.scheme() == "http";
    location::host(from) == location::host(to) && !is_downgrade
}

async fn read(response: Response, max: usize) -> Result<Found, ToolError> {
    let url = response.url().clone();
    let header = |name| response.headers().get(name).and_then(|it| it.to_str().ok());
    let content_type = header(CONTENT_TYPE).unwrap_or_default().to_owned();
    if let Some(encoding) = header(CONTENT_ENCODING).filter(|it| *it != "identity") {
        return Err(ToolError::Failed(format!(
            "{url} is packed as {encoding}, which is not understood"
        )));
    }
    page::must_be_readable(&url, &content_type)?;
    let mut bytes = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| failed(&url, error))?;
        let room = max - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok(Found::Page { content_type, bytes, is_cut: true });
        }
    }
    Ok(Found::Page { content_type, bytes, is_cut: false })
}

fn failed(url: &Url, error: reqwest::Error) -> ToolError {
    let error = error.without_url();
    let mut text = format!("{url} could not be fetched: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    ToolError::Failed(text)
}
