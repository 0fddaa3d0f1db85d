//! Who may send requests: the host and the origin that a request names, and its token.
//!
//! A web page can make a browser send requests to this machine, under a name that its owner lets point here (DNS
//! rebinding). Such a request names that host, and the page as its origin.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{StatusCode, Uri};
use subtle::ConstantTimeEq as _;

/// The rules for requests.
pub(super) struct Guard {
    address: SocketAddr,
    hosts: Vec<String>,
    token: Option<String>,
}

/// Why a request is refused.
pub(super) type Refused = (StatusCode, String);

impl Guard {
    pub(super) fn new(address: SocketAddr, hosts: Vec<String>, token: Option<String>) -> Self {
        Self { address, hosts, token }
    }

    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let forbidden = |reason: String| (StatusCode::FORBIDDEN, reason);
        let host = one(headers, &HOST).map_err(forbidden)?;
        let host = host.ok_or_else(|| forbidden("the request has no Host header".to_owned()))?;
        for authority in std::iter::once(host).chain(uri.authority().map(|it| it.as_str())) {
            if !self.is_own(authority) {
                return Err(forbidden(format!(
                    "this server is not known as `{authority}`; it is reached as {}",
                    self.address
                )));
            }
        }
        if let Some(origin) = one(headers, &ORIGIN).map_err(forbidden)? {
            let authority =
                origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if authority != Some(host) {
                return Err(forbidden(format!("pages of `{origin}` may not use this server")));
            }
        }
        self.check_token(headers)
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = one(headers, &AUTHORIZATION).ok().flatten();
        let given = given.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let is_right =
            given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(token.as_bytes())));
        match is_right && !token.is_empty() {
            true => Ok(()),
            false => {
                let reason =
                    "the request needs the header `Authorization: Bearer TOKEN`".to_owned();
                Err((StatusCode::UNAUTHORIZED, reason))
            }
        }
    }

    /// Whether a host with or without a port is this server.
    fn is_own(&self, authority: &str) -> bool {
        // Other machines know this one by names that it does not know itself; the token protects it from web pages.
        if !self.address.ip().is_loopback() && self.hosts.is_empty() {
            return true;
        }
        let host = without_port(authority);
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost")
            || ip.is_ok_and(|ip| ip.is_loopback() || ip == self.address.ip())
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.is_empty() =>
        {
            // The last group of a bare IPv6 address is not a port.
            if host.contains(':') && !host.ends_with(']') { authority } else { host }
        }
        _ => authority,
    }
}

/// The value of a header that may be there once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, String> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(Some).map_err(|_| format!("the header {name} is not text"))
        }
        (Some(_), Some(_)) => Err(format!("the request has two headers {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        guard
            .check(&Uri::from_static("/mcp"), &map)
            .map_or_else(|(code, _)| code.as_u16(), |()| 200)
    }

    // Mutants: the result of `is_own` not looked at; the origin not compared.
    #[test]
    fn only_requests_that_name_this_machine_are_let_through() {
        let guard = Guard::new("127.0.0.1:80".parse().unwrap(), vec!["box.lan".to_owned()], None);
        for host in
            ["localhost", "localhost:80", "127.0.0.1:80", "[::1]:80", "LOCALHOST", "box.lan:1"]
        {
            assert_eq!(status(&guard, &[("host", host)]), 200, "{host}");
            let origin = format!("http://{host}");
            assert_eq!(status(&guard, &[("host", host), ("origin", &origin)]), 200, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""]
        {
            assert_eq!(status(&guard, &[("host", host)]), 403, "{host}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:3000", "file://localhost"] {
            assert_eq!(
                status(&guard, &[("host", "localhost"), ("origin", origin)]),
                403,
                "{origin}"
            );
        }
        assert_eq!(status(&guard, &[]), 403);
        assert_eq!(status(&guard, &[("host", "evil.example"), ("host", "localhost")]), 403);
    }

    // Mutants: any token or none accepted; the beginning of the token accepted.
    #[test]
    fn a_request_needs_the_whole_token() {
        let guard =
            Guard::new("0.0.0.0:80".parse().unwrap(), Vec::new(), Some("secret".to_owned()));
        let with = |value: &str| status(&guard, &[("host", "any.lan"), ("authorization", value)]);
        assert_eq!(with("Bearer secret"), 200);
        assert_eq!(with("bearer secret"), 200);
        for wrong in
            ["Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"]
        {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert_eq!(status(&guard, &[("host", "any.lan")]), 401);
        let empty = Guard::new("127.0.0.1:80".parse().unwrap(), Vec::new(), Some(String::new()));
        assert_eq!(status(&empty, &[("host", "localhost"), ("authorization", "Bearer ")]), 401);
    }
}
