//! Fetches a page: from checked addresses only, with limits on time, size and redirects.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use ostler_engine::tool::{ToolCx, ToolError};
use ostler_http::Certificates;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Proxy, Response, StatusCode, Url, redirect};

use super::{location, page, proxy};
use crate::blocking::blocking;

/// The limits of a fetch.
pub(super) struct Limits {
    pub(super) time: Duration,
    pub(super) bytes: usize,
    pub(super) redirects: usize,
}

pub(super) const LIMITS: Limits =
    Limits { time: Duration::from_secs(30), bytes: 10 * 1024 * 1024, redirects: 5 };
const TO_CONNECT: Duration = Duration::from_secs(10);

/// The result of a fetch.
pub(super) struct FetchResult {
    /// The final address, after redirects.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) found: FetchedContent,
}

pub(super) enum FetchedContent {
    Page {
        content_type: String,
        bytes: Vec<u8>,
        /// The page exceeds the size limit.
        is_cut: bool,
    },
    /// The page is on another host, which is not allowed yet.
    Elsewhere(Url),
}

/// Fetches a page.
pub(super) async fn visit(
    clients: &Clients,
    cx: &ToolCx,
    url: Url,
    limits: &Limits,
) -> Result<FetchResult, ToolError> {
    let host = location::host(&url);
    tokio::time::timeout(limits.time, go(clients, cx, url, limits)).await.unwrap_or_else(|_| {
        let seconds = limits.time.as_secs_f32();
        Err(ToolError::Failed(format!("{host} did not answer within {seconds} s")))
    })
}

async fn go(
    clients: &Clients,
    cx: &ToolCx,
    mut url: Url,
    limits: &Limits,
) -> Result<FetchResult, ToolError> {
    // One host, one lookup: redirects to other hosts are not followed.
    let client = clients.get(route(cx, &url).await?).await?;
    for _ in 0..=limits.redirects {
        let sent = client.get(url.clone()).header(ACCEPT, page::ACCEPTED).send().await;
        let response = sent.map_err(|error| failed(&url, error))?;
        let status = response.status();
        match next(&url, &response)? {
            None => {
                let found = read(response, limits.bytes).await?;
                return Ok(FetchResult { url, status, found });
            }
            Some(to) if is_same_place(&url, &to) => url = to,
            Some(to) => {
                return Ok(FetchResult { url, status, found: FetchedContent::Elsewhere(to) });
            }
        }
    }
    Err(ToolError::Failed(format!("{url} redirects more than {} times", limits.redirects)))
}

/// How a host is reached. Two fetches with the same route may share a connection: its addresses were checked for
/// both.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Route {
    scheme: String,
    host: String,
    port: Option<u16>,
    by: Destination,
}

#[derive(Clone, Debug)]
enum Destination {
    /// To one of these addresses, the best first.
    Addresses(Vec<SocketAddr>),
    Proxy(String),
}

impl PartialEq for Destination {
    /// DNS servers change the order of addresses from one answer to the next.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Addresses(one), Self::Addresses(other)) => {
                one.len() == other.len() && one.iter().all(|address| other.contains(address))
            }
            (Self::Proxy(one), Self::Proxy(other)) => one == other,
            _ => false,
        }
    }
}

/// The route to the host of this address only.
async fn route(cx: &ToolCx, url: &Url) -> Result<Route, ToolError> {
    let host = location::host(url);
    // Internal hosts are not reached through the proxy.
    let variable = |name: &str| cx.env.get(name);
    let proxy = if location::is_inside(&host) { None } else { proxy::of(url, variable) };
    let by = match proxy {
        None => Destination::Addresses(location::resolve(cx, url).await?),
        Some(proxy) => {
            may_go_through_proxy(cx, url).await?;
            Destination::Proxy(proxy)
        }
    };
    let (scheme, port) = (url.scheme().to_owned(), url.port_or_known_default());
    Ok(Route { scheme, host, port, by })
}

/// The clients of the last fetches. Making one reads the system's certificates, and a new client for every page
/// connects again for every page.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<VecDeque<(Route, Client)>>);

/// A session rarely switches between more hosts than this.
const MOST_CLIENTS: usize = 8;
/// How long a connection is kept for the next page. Many servers close theirs after five seconds.
const KEPT: Duration = Duration::from_secs(4);

impl Clients {
    async fn get(&self, route: Route) -> Result<Client, ToolError> {
        if let Some(client) = self.known(&route) {
            return Ok(client);
        }
        let by = route.by.clone();
        let client = blocking(move || client(by)).await?;
        let mut clients = self.0.lock();
        clients.truncate(MOST_CLIENTS - 1);
        clients.push_front((route, client.clone()));
        Ok(client)
    }

    fn known(&self, route: &Route) -> Option<Client> {
        let mut clients = self.0.lock();
        let at = clients.iter().position(|(known, _)| known == route)?;
        // The most recently used one stays longest.
        let found = clients.remove(at)?;
        clients.push_front(found);
        clients.front().map(|(_, client)| client.clone())
    }
}

fn client(by: Destination) -> Result<Client, ToolError> {
    let client = ostler_http::client(Certificates::System)
        .map_err(|error| ToolError::Failed(format!("no connection: {error}")))?
        .user_agent(concat!("ostler/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .pool_idle_timeout(KEPT)
        .connect_timeout(TO_CONNECT);
    let client = match by {
        Destination::Addresses(addresses) => {
            client.dns_resolver(Arc::new(PinnedResolver(addresses)))
        }
        Destination::Proxy(proxy) => {
            let proxy = Proxy::all(&proxy).map_err(|error| {
                ToolError::Failed(format!("the proxy {proxy} of the environment: {error}"))
            })?;
            client.proxy(proxy)
        }
    };
    client.build().map_err(|error| ToolError::Failed(format!("no connection: {error}")))
}

/// A proxy resolves names itself, so the address it finds is unknown here. What is known is checked: IP addresses,
/// and what the name resolves to here, if anything.
async fn may_go_through_proxy(cx: &ToolCx, url: &Url) -> Result<(), ToolError> {
    match location::resolve(cx, url).await {
        Err(refused @ ToolError::Refused(_)) => Err(refused),
        // Behind a proxy public names often do not resolve locally.
        Ok(_) | Err(ToolError::Failed(_)) => Ok(()),
    }
}

/// The checked addresses, whatever name is resolved.
struct PinnedResolver(Vec<SocketAddr>);

impl Resolve for PinnedResolver {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// The target of a redirect, if the response is one.
fn next(url: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(to) = response.headers().get(LOCATION).filter(|_| is_redirect) else {
        return Ok(None);
    };
    let to = to.to_str().ok().and_then(|to| url.join(to).ok());
    let to = to.ok_or_else(|| ToolError::Failed(format!("{url} redirects without a target")))?;
    location::read(to.as_str()).map(Some)
}

/// Whether a redirect stays on the allowed host and at the same level of security.
fn is_same_place(from: &Url, to: &Url) -> bool {
    let is_downgrade = from.scheme() == "https" && to.scheme() == "http";
    location::host(from) == location::host(to) && !is_downgrade
}

async fn read(response: Response, max: usize) -> Result<FetchedContent, ToolError> {
    let url = response.url().clone();
    let header = |name| response.headers().get(name).and_then(|it| it.to_str().ok());
    let content_type = header(CONTENT_TYPE).unwrap_or_default().to_owned();
    if let Some(encoding) = header(CONTENT_ENCODING).filter(|it| *it != "identity") {
        return Err(ToolError::Failed(format!(
            "{url} is packed as {encoding}, which is not supported"
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
            return Ok(FetchedContent::Page { content_type, bytes, is_cut: true });
        }
    }
    Ok(FetchedContent::Page { content_type, bytes, is_cut: false })
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
