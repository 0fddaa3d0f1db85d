//! The door: which requests are accepted, and who sent them.
//!
//! A browser sends requests for every page that the user opens, so a request from this machine proves nothing. A
//! request is accepted if its host is a name of this server (another name that resolves to it is DNS rebinding), its
//! origin is the server's own or missing, and a known caller sent it: with a token, or with the cookie of a browser and
//! the key of the server's own page. The same holds before a WebSocket is opened and before a stream of events begins.
//! Open connections are checked again ([`super::revocation`]).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Version, header};
use axum::response::{IntoResponse as _, Response};
use ostler_base::error::{ApiError, shown};

use super::code::Browsers;
use super::rate::Buckets;
use super::site::{Access, Site};
use super::token::TokenDigest;
use super::users::{Caller, Users};

/// The length limit of a token; real ones are much shorter.
const LONGEST_TOKEN: usize = 256;

/// Headers that identify the caller, the host or the content. With two of them, this server and a proxy might read
/// different ones.
const SINGLE: [&str; 10] = [
    "host",
    "origin",
    "authorization",
    "content-type",
    "content-length",
    "sec-fetch-site",
    "sec-fetch-mode",
    "sec-fetch-dest",
    "upgrade",
    PAGE_KEY,
];

/// The header in which the server's own page sends its key.
pub(crate) const PAGE_KEY: &str = "x-ostler-page-key";
/// A page cannot send headers when it opens a WebSocket. It offers two protocols: one with this prefix and the key, and
/// [`SOCKET`], which the server selects.
const SOCKET_KEY: &str = "ostler.page-key.";
/// The protocol of the server's WebSocket.
pub const SOCKET: &str = "ostler";

/// The state of the door.
pub struct Guard {
    pub site: Site,
    pub users: Arc<Users>,
    pub browsers: Browsers,
    /// Requests per token.
    pub requests: Buckets<TokenDigest>,
    /// Wrong tokens per address.
    pub failures: Buckets<IpAddr>,
    /// Requests per address to open paths.
    pub strangers: Buckets<IpAddr>,
}

/// Marks a request to an open path: its sender is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromStranger;

/// How a request is accepted.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// The path is open.
    Public,
    /// A known caller sent it, with a token, or with the cookie of this digest.
    Caller { caller: Caller, cookie: Option<TokenDigest> },
    /// A browser asks whether a listed page may send a request.
    Preflight,
}

/// Where a request comes from, according to the browser's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestSource {
    /// No page: a program, or an address that the user typed.
    NoPage,
    /// The server's own page.
    OwnPage,
    /// A page of another origin that the operator listed for this path.
    ListedPage,
    /// A link on any page that leads to this server.
    Link,
}

impl Guard {
    /// Accepts or refuses a request.
    ///
    /// # Errors
    /// With the refusal.
    pub(crate) fn judge(
        &self,
        parts: &Parts,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Result<Entry, ApiError> {
        check_single(&parts.headers)?;
        let host = self.host(parts)?;
        let source = self.source(parts, &host)?;
        let access = self.site.access(&parts.method, parts.uri.path());
        if parts.method == Method::OPTIONS && source == RequestSource::ListedPage {
            return Ok(Entry::Preflight);
        }
        let entry = match access {
            Access::Public => {
                self.check_stranger(peer, now)?;
                Entry::Public
            }
            Access::Callers if source == RequestSource::Link => return Err(cross_site()),
            Access::Callers => self.caller(parts, source, peer, now)?,
        };
        check_json(parts)?;
        Ok(entry)
    }

    /// The host of the request, which must be one of this server's names.
    fn host(&self, parts: &Parts) -> Result<String, ApiError> {
        let said = parts.headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
        let in_target = parts.uri.authority().map(|authority| authority.as_str());
        let host = match (said, in_target) {
            // HTTP/2 sends the host in the target instead of the header.
            (None, Some(target)) if parts.version >= Version::HTTP_2 => target,
            (None, _) => {
                return Err(ApiError::bad_request("no_host", "the request has no Host header"));
            }
            // Some programs prefer the host in the target to the header, so they must not differ.
            (Some(said), Some(target)) if !said.eq_ignore_ascii_case(target) => {
                return Err(misdirected(target));
            }
            (Some(said), _) => said,
        };
        let host = host.to_ascii_lowercase();
        if self.site.is_own_host(&host) { Ok(host) } else { Err(misdirected(&host)) }
    }

    fn source(&self, parts: &Parts, host: &str) -> Result<RequestSource, ApiError> {
        let text = |name: &str| parts.headers.get(name).map(|it| it.to_str().unwrap_or_default());
        let fetch_site = text("sec-fetch-site");
        let is_link = || {
            matches!(parts.method, Method::GET | Method::HEAD)
                && text("sec-fetch-mode") == Some("navigate")
                && text("sec-fetch-dest") == Some("document")
        };
        match (text("origin"), fetch_site) {
            (Some(origin), _) if self.site.may_read(parts.uri.path(), origin) => {
                Ok(RequestSource::ListedPage)
            }
            (Some(origin), None | Some("same-origin")) if self.site.is_origin(origin, host) => {
                Ok(RequestSource::OwnPage)
            }
            (None, Some("same-origin")) => Ok(RequestSource::OwnPage),
            (None, None | Some("none")) => Ok(RequestSource::NoPage),
            (None, Some("cross-site" | "same-site")) if is_link() => Ok(RequestSource::Link),
            _ => Err(cross_site()),
        }
    }

    /// The caller who sent the request.
    fn caller(
        &self,
        parts: &Parts,
        source: RequestSource,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Result<Entry, ApiError> {
        let mut by_cookie = None;
        let caller = match bearer(&parts.headers)? {
            // A wrong token is an error even if a valid cookie comes with it.
            Some(token) => self.users.caller(&TokenDigest::of(token)),
            None => {
                let Some(cookie) = self.cookie(parts, source)? else {
                    let error = ApiError::unauthenticated("the request has no token");
                    return Err(error
                        .hint("send `Authorization: Bearer …` with the token of the token file"));
                };
                by_cookie = Some(TokenDigest::of(cookie));
                let Some(key) = page_key(&parts.headers) else { return Err(no_page_key()) };
                let grant = self.browsers.grant(cookie, key, now);
                grant.and_then(|grant| self.users.caller(&grant))
            }
        };
        let Some(caller) = caller else { return Err(self.unknown(peer, now)) };
        self.requests
            .take(caller.grant, now)
            .map_err(|wait| ApiError::too_many("too many requests with this token", wait))?;
        Ok(Entry::Caller { caller, cookie: by_cookie })
    }

    /// Slows down an address with too many requests to open paths, before anything is read or looked up.
    fn check_stranger(&self, peer: Option<IpAddr>, now: Instant) -> Result<(), ApiError> {
        let Some(peer) = peer else { return Ok(()) };
        self.strangers
            .take(network(peer), now)
            .map_err(|wait| ApiError::too_many("too many requests from this address", wait))
    }

    /// The address that a request comes from. `X-Forwarded-For` counts only if the operator trusts the proxy.
    pub fn peer(&self, parts: &Parts) -> Option<IpAddr> {
        let direct = parts.extensions.get::<ConnectInfo<std::net::SocketAddr>>();
        let direct = direct.map(|ConnectInfo(address)| address.ip());
        if !self.site.trusts_forwarded_for {
            return direct;
        }
        let lines = parts.headers.get_all("x-forwarded-for").iter();
        // The server's own proxy added the last address; the client may have made up the ones before.
        let last =
            lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).last();
        last.and_then(|address| address.trim().parse().ok()).or(direct)
    }

    /// The session's cookie, if this request may use cookies.
    fn cookie<'a>(
        &self,
        parts: &'a Parts,
        source: RequestSource,
    ) -> Result<Option<&'a str>, ApiError> {
        let Some(cookie) = one_cookie(&parts.headers, &self.site.cookie)? else { return Ok(None) };
        // A browser always sends the origin when it opens a WebSocket.
        let says_origin = parts.headers.contains_key(header::ORIGIN);
        let is_silent = is_upgrade(&parts.headers) && !says_origin;
        // Older browsers do not say where a GET comes from. The page key proves it: a page of another origin would need
        // permission to send that header.
        let is_older = source == RequestSource::NoPage
            && matches!(parts.method, Method::GET | Method::HEAD)
            && !parts.headers.contains_key("sec-fetch-site")
            && parts.headers.contains_key(PAGE_KEY);
        if (source == RequestSource::OwnPage || is_older) && !is_silent {
            return Ok(Some(cookie));
        }
        let error =
            ApiError::unauthenticated("a cookie is accepted only from the server's own page");
        Err(error.hint("programs send `Authorization: Bearer …`"))
    }

    /// Refuses a wrong token. After several of them the address has to wait, but only with wrong tokens: a caller with
    /// a valid one is not blocked by others at the same address.
    pub(super) fn unknown(&self, peer: Option<IpAddr>, now: Instant) -> ApiError {
        let wait = peer.and_then(|peer| self.failures.take(network(peer), now).err());
        match wait {
            Some(wait) => ApiError::too_many("too many wrong tokens from this address", wait),
            None => ApiError::unauthenticated("the token or the session is not known")
                .hint("it may have been renewed or revoked: read the token file again, or ask for a new code"),
        }
    }
}

/// The network of an address: one user may have a whole IPv6 network.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
        },
        v4 => v4,
    }
}

fn misdirected(host: &str) -> ApiError {
    let message = format!("{} is not a name of this server", shown(host));
    ApiError::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
        .hint("use the address that it prints at its start, or add the name to its configuration")
}

fn cross_site() -> ApiError {
    ApiError::forbidden("cross_site", "requests of other sites are refused")
}

fn no_page_key() -> ApiError {
    ApiError::unauthenticated("the page key of this browser is missing")
        .hint("sign in again; programs send `Authorization: Bearer …`")
}

/// The key of the server's own page: in its header, or among the protocols of a WebSocket.
fn page_key(headers: &HeaderMap) -> Option<&str> {
    let key = match is_upgrade(headers) {
        false => headers.get(PAGE_KEY)?.to_str().ok(),
        true => {
            let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
            let offered = lines.filter_map(|line| line.to_str().ok()).flat_map(|it| it.split(','));
            offered.map(str::trim).find_map(|it| it.strip_prefix(SOCKET_KEY))
        }
    };
    key.filter(|key| key.len() <= LONGEST_TOKEN)
}

fn check_single(headers: &HeaderMap) -> Result<(), ApiError> {
    let twice = SINGLE.iter().find(|name| headers.get_all(**name).iter().nth(1).is_some());
    let Some(name) = twice else { return Ok(()) };
    Err(ApiError::bad_request("duplicate_header", format!("there are several {name} headers")))
}

pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
}

/// The token in the `Authorization` header. It is not accepted anywhere else.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| text.len() <= LONGEST_TOKEN);
    let token = text.and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    token.map(Some).ok_or_else(|| {
        ApiError::unauthenticated("the Authorization header is not `Bearer` and a token")
    })
}

/// A cookie by its name. Two with the same name may be an attempt to replace the user's cookie.
pub(super) fn one_cookie<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Result<Option<&'a str>, ApiError> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let value = values.next();
    if values.next().is_some() {
        return Err(ApiError::bad_request(
            "duplicate_cookie",
            format!("there are several cookies {name}"),
        ));
    }
    Ok(value.filter(|value| value.len() <= LONGEST_TOKEN))
}

/// Requires JSON for every request that changes something: no form and no script of another page can send it without a
/// preflight request. They cannot send a token in a header either, so a request with a token and without a body needs
/// no content type.
fn check_json(parts: &Parts) -> Result<(), ApiError> {
    let kind =
        parts.headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let says_nothing = kind.is_none() && !has_body(&parts.headers);
    let needs_it = match parts.method {
        Method::POST | Method::PUT | Method::PATCH => {
            !says_nothing || !parts.headers.contains_key(header::AUTHORIZATION)
        }
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE => false,
        // Browsers send a preflight request for DELETE and unknown methods, and it is refused.
        _ => has_body(&parts.headers),
    };
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim).unwrap_or_default();
    if !needs_it || essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "the body must be JSON, with `Content-Type: application/json`";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "json_only", message))
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    length.is_some_and(|length| length != "0") || headers.contains_key(header::TRANSFER_ENCODING)
}

pub(super) fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, accept, last-event-id",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers, Body::empty()).into_response()
}

#[cfg(test)]
mod tests;
