//! Which addresses may be fetched, and how they are resolved.

use std::net::{IpAddr, SocketAddr};

use ostler_engine::tool::{ToolCx, ToolError};
use reqwest::Url;

use crate::address;

const MAX_LENGTH: usize = 8_000;

/// Ports of protocols other than HTTP: a request could have an effect there. The list is that of the Fetch standard,
/// as in browsers.
const OTHER_PROTOCOLS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6379, 6566, 6665, 6666,
    6667, 6668, 6669, 6679, 6697, 10080,
];

/// Suffixes that no public name has.
const LOCAL_ENDINGS: &[&str] =
    &[".localhost", ".local", ".internal", ".intranet", ".lan", ".home.arpa", ".localdomain"];

/// Parses an address that may be fetched, as far as its text shows.
pub(super) fn read(text: &str) -> Result<Url, ToolError> {
    let wrong = |why: &str| {
        let shown: String = text.chars().take(200).collect();
        ToolError::Refused(format!("{shown} cannot be fetched: {why}"))
    };
    if text.len() > MAX_LENGTH {
        return Err(wrong("the address is too long"));
    }
    let mut url = Url::parse(text.trim())
        .map_err(|error| wrong(&format!("it is not a web address ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("only http and https addresses are allowed"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("names and passwords do not belong in an address; leave them out"));
    }
    let port = url.port_or_known_default().unwrap_or(0);
    if OTHER_PROTOCOLS.contains(&port) {
        return Err(wrong(&format!("port {port} is not for web pages")));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The host as in permission rules.
pub(super) fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_end_matches('.').to_lowercase()
}

/// The host's address, if it is an IP address. The parser has normalised all spellings.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Resolves a host to its addresses, each of them allowed.
///
/// The connection must use these and not resolve the name again: the second answer could differ.
pub(super) async fn resolve(cx: &ToolCx, url: &Url) -> Result<Vec<SocketAddr>, ToolError> {
    let host = host(url);
    let port = url.port_or_known_default().unwrap_or(0);
    let addresses: Vec<SocketAddr> = match literal(&host) {
        Some(address) => vec![SocketAddr::new(address, port)],
        None => {
            let found = tokio::net::lookup_host((host.as_str(), port)).await;
            found
                .map_err(|error| ToolError::Failed(format!("{host} cannot be found: {error}")))?
                .collect()
        }
    };
    check(cx, &host, addresses.iter().map(SocketAddr::ip))?;
    if addresses.is_empty() {
        return Err(ToolError::Failed(format!("{host} has no address")));
    }
    Ok(addresses)
}

/// Refuses a host that is, or may be, internal. One internal address of many is enough.
pub(super) fn check(
    cx: &ToolCx,
    host: &str,
    addresses: impl IntoIterator<Item = IpAddr>,
) -> Result<(), ToolError> {
    // Anyone can point a name anywhere, so a name proves nothing about its address.
    let is_named = is_inside(host) && cx.names_host(host);
    for address in addresses {
        let Some(why) = address::inside(address) else { continue };
        let by_address = as_in_rules(address);
        if is_named || cx.names_host(&by_address) {
            continue;
        }
        let what = if literal(host).is_some() {
            format!("{host} is {why}")
        } else {
            format!("{host} leads to {address}, {why}")
        };
        let name = if is_inside(host) { host } else { &by_address };
        return Err(ToolError::Refused(format!(
            "{what}. Nothing is fetched from there unless a permission rule names it: WebFetch(domain:{name})"
        )));
    }
    Ok(())
}

/// Whether a host can only be internal: by its address, or by a name that is never public.
pub(super) fn is_inside(host: &str) -> bool {
    match literal(host) {
        Some(address) => address::inside(address).is_some(),
        None => !host.contains('.') || LOCAL_ENDINGS.iter().any(|ending| host.ends_with(ending)),
    }
}

fn as_in_rules(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
