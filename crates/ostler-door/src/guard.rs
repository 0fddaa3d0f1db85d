//! The door: which requests come in, and who is behind them.
//!
//! A browser sends requests for any page that the user looks at, so being on this machine proves nothing. A request
//! comes in when its host is ours (a foreign name that leads here is DNS rebinding), its origin is ours or absent, and
//! somebody we know sent it: with a token, or with the cookie of a browser and the key of our own page. The same holds
//! before a WebSocket is opened and before a stream of events begins; what stays open is checked again
//! ([`super::revocation`]).

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

/// A token is much shorter.
const LONGEST_TOKEN: usize = 256;

/// Headers that say who asks for what. Two of them are one for us and another for somebody else.
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

/// The header with which our page sends its key.
pub(crate) const PAGE_KEY: &str = "x-ostler-page-key";
/// A page cannot send headers when it opens a WebSocket. It offers two protocols: one of this name with the key behind it,
/// and [`SOCKET`], which is the one that is taken.
const SOCKET_KEY: &str = "ostler.page-key.";
/// The protocol of our WebSocket.
pub const SOCKET: &str = "ostler";

/// What the door knows.
pub struct Guard {
    pub site: Site,
    pub users: Arc<Users>,
    pub browsers: Browsers,
    /// Requests per token.
    pub requests: Buckets<TokenDigest>,
    /// Wrong tokens per address.
    pub failures: Buckets<IpAddr>,
    /// Requests per address to paths that are open to everybody.
    pub strangers: Buckets<IpAddr>,
}

/// Marks a request to a path that is open to everybody: nothing is known about who sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromStranger;

/// How a request comes in.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is for everybody.
    Public,
    /// Somebody we know sent it, with a token, or with the cookie of this digest.
    Caller { caller: Caller, cookie: Option<TokenDigest> },
    /// A browser asks whether a page that we know may send something.
    Preflight,
}

/// Where a request comes from, as browsers tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whence {
    /// No page: a program, or an address that somebody typed in.
    NoPage,
    /// Our own page.
    OwnPage,
    /// A page elsewhere that the operator listed for this path.
    ListedPage,
    /// A link on some page that leads to ours.
    Link,
}

impl Guard {
    /// Decides about a request.
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
        let whence = self.whence(parts, &host)?;
        let access = self.site.access(&parts.method, parts.uri.path());
        if parts.method == Method::OPTIONS && whence == Whence::ListedPage {
            return Ok(Entry::Preflight);
        }
        let entry = match access {
            Access::Public => {
                self.check_stranger(peer, now)?;
                Entry::Public
            }
            Access::Callers if whence == Whence::Link => return Err(cross_site()),
            Access::Callers => self.caller(parts, whence, peer, now)?,
        };
        check_json(parts)?;
        Ok(entry)
    }

    /// The host that the request is for, which must be one of ours.
    fn host(&self, parts: &Parts) -> Result<String, ApiError> {
        let said = parts.headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
        let in_target = parts.uri.authority().map(|authority| authority.as_str());
        let host = match (said, in_target) {
            // What HTTP/2 says in place of the header.
            (None, Some(target)) if parts.version >= Version::HTTP_2 => target,
            (None, _) => {
                return Err(ApiError::bad_request("no_host", "the request has no Host header"));
            }
            // A target with a host of its own wins over the header, with some; so they must not differ.
            (Some(said), Some(target)) if !said.eq_ignore_ascii_case(target) => {
                return Err(misdirected(target));
            }
            (Some(said), _) => said,
        };
        let host = host.to_ascii_lowercase();
        if self.site.is_own_host(&host) { Ok(host) } else { Err(misdirected(&host)) }
    }

    fn whence(&self, parts: &Parts, host: &str) -> Result<Whence, ApiError> {
        let text = |name: &str| parts.headers.get(name).map(|it| it.to_str().unwrap_or_default());
        let fetch_site = text("sec-fetch-site");
        let is_link = || {
            matches!(parts.method, Method::GET | Method::HEAD)
                && text("sec-fetch-mode") == Some("navigate")
                && text("sec-fetch-dest") == Some("document")
        };
        match (text("origin"), fetch_site) {
            (Some(origin), _) if self.site.may_read(parts.uri.path(), origin) => {
                Ok(Whence::ListedPage)
            }
            (Some(origin), None | Some("same-origin")) if self.site.is_origin(origin, host) => {
                Ok(Whence::OwnPage)
            }
            (None, Some("same-origin")) => Ok(Whence::OwnPage),
            (None, None | Some("none")) => Ok(Whence::NoPage),
            (None, Some("cross-site" | "same-site")) if is_link() => Ok(Whence::Link),
            _ => Err(cross_site()),
        }
    }

    /// Who sent the request.
    fn caller(
        &self,
        parts: &Parts,
        whence: Whence,
        peer: Option<IpAddr>,
        now: Instant,
    ) -> Result<Entry, ApiError> {
        let mut by_cookie = None;
        let caller = match bearer(&parts.headers)? {
            // A token that does not count is an error also beside a cookie that would.
            Some(token) => self.users.caller(&TokenDigest::of(token)),
            None => {
                let Some(cookie) = self.cookie(parts, whence)? else {
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

    /// Slows an address down that floods paths that are open to everybody, before anything is read or looked up.
    fn check_stranger(&self, peer: Option<IpAddr>, now: Instant) -> Result<(), ApiError> {
        let Some(peer) = peer else { return Ok(()) };
        self.strangers
            .take(network(peer), now)
            .map_err(|wait| ApiError::too_many("too many requests from this address", wait))
    }

    /// The address that a request comes from. A proxy's word for it counts only if the operator says so.
    pub fn peer(&self, parts: &Parts) -> Option<IpAddr> {
        let direct = parts.extensions.get::<ConnectInfo<std::net::SocketAddr>>();
        let direct = direct.map(|ConnectInfo(address)| address.ip());
        if !self.site.trusts_forwarded_for {
            return direct;
        }
        let lines = parts.headers.get_all("x-forwarded-for").iter();
        // The last one is what our own proxy saw; those before it are what the client claims.
        let last =
            lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).last();
        last.and_then(|address| address.trim().parse().ok()).or(direct)
    }

    /// The session's cookie, if cookies count for this request.
    fn cookie<'a>(&self, parts: &'a Parts, whence: Whence) -> Result<Option<&'a str>, ApiError> {
        let Some(cookie) = one_cookie(&parts.headers, &self.site.cookie)? else { return Ok(None) };
        // A browser always says where a WebSocket is opened from.
        let says_origin = parts.headers.contains_key(header::ORIGIN);
        let is_silent = is_upgrade(&parts.headers) && !says_origin;
        // Older browsers say nothing about where a GET comes from. The header of the page key does: a page elsewhere would
        // have to be allowed to send it.
        let is_older = whence == Whence::NoPage
            && matches!(parts.method, Method::GET | Method::HEAD)
            && !parts.headers.contains_key("sec-fetch-site")
            && parts.headers.contains_key(PAGE_KEY);
        if (whence == Whence::OwnPage || is_older) && !is_silent {
            return Ok(Some(cookie));
        }
        let error = ApiError::unauthenticated("a cookie counts only for requests of our own page");
        Err(error.hint("programs send `Authorization: Bearer …`"))
    }

    /// Somebody who came with a wrong token. After some of them the address has to wait, for wrong ones only: who has
    /// a right one is not kept out by others at the same address.
    pub(super) fn unknown(&self, peer: Option<IpAddr>, now: Instant) -> ApiError {
        let wait = peer.and_then(|peer| self.failures.take(network(peer), now).err());
        match wait {
            Some(wait) => ApiError::too_many("too many wrong tokens from this address", wait),
            None => ApiError::unauthenticated("the token or the session is not known")
                .hint("it may have been renewed or taken back: read the token file again, or ask for a new code"),
        }
    }
}

/// One user has a whole network of this kind.
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
    ApiError::forbidden("cross_site", "requests of other sites are not taken")
}

fn no_page_key() -> ApiError {
    ApiError::unauthenticated("the page key of this browser is missing")
        .hint("sign in again; programs send `Authorization: Bearer …`")
}

/// The key of our page: in its header, or among the protocols of a WebSocket.
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

/// The token in the header; nowhere else is one looked for.
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

/// A cookie by its name. Two of one name come from somebody who wants to slip in his own.
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

/// Whatever changes something is JSON, which no form and no script of another page can send without a preflight request. Neither can they
/// send a token in a header; who does and says nothing else need not say nothing in JSON.
fn check_json(parts: &Parts) -> Result<(), ApiError> {
    let kind =
        parts.headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    let says_nothing = kind.is_none() && !has_body(&parts.headers);
    let needs_it = match parts.method {
        Method::POST | Method::PUT | Method::PATCH => {
            !says_nothing || !parts.headers.contains_key(header::AUTHORIZATION)
        }
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE => false,
        // Browsers ask before they send it or anything they do not know, and get no answer that lets them.
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
