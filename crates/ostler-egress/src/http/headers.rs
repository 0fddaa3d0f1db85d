//! Headers on their way through the proxy.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Request, Version};

use crate::host::Target;

/// Headers between two neighbours only (RFC 9110), and two that are older than it. `hyper` writes the framing of a body
/// itself.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Removes what is between client and proxy, or between proxy and server; also what `Connection` names.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Whether the Host header names the target: what was judged must be what the server reads.
pub(super) fn host_agrees<B>(request: &Request<B>, target: &Target) -> bool {
    let mut values = request.headers().get_all(HOST).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            let host = value.to_str().ok().and_then(|it| Target::parse(it, Some(80)).ok());
            host.as_ref() == Some(target)
        }
        (None, _) => request.version() == Version::HTTP_10,
        (Some(_), Some(_)) => false,
    }
}

/// Writes the Host header from the target that was judged.
pub(super) fn set_host(headers: &mut HeaderMap, target: &Target) {
    let host = if target.port == 80 { target.host.to_string() } else { target.to_string() };
    let value = HeaderValue::try_from(host).expect("a target has visible ASCII characters only");
    headers.insert(HOST, value);
}

/// The password of `Proxy-Authorization: Basic`.
pub(super) fn password(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let is_basic = scheme.eq_ignore_ascii_case("basic");
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok().filter(|_| is_basic)?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}
