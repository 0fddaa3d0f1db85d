//! Addresses of MCP servers compared with patterns such as `https://*.example.com/*`.
//!
//! Scheme, host and path are compared one by one. A star in the host does not match a part of the path, so that
//! `https://other.net/.example.com/` is not an address of `https://*.example.com/*`.

use url::{Position, Url};

use crate::wildcard;

/// Whether an address matches a pattern. Case and a final dot do not matter in a host, nor does the usual port.
pub(super) fn fits(pattern: &str, address: &str) -> bool {
    if pattern == "*" || pattern == address {
        return true;
    }
    let Ok(url) = Url::parse(address) else { return false };
    let Some((scheme, rest)) = pattern.split_once("://") else {
        return wildcard::fits(pattern, url.as_str());
    };
    let (place, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        // A star at the end stands for everything that follows.
        None if rest.ends_with('*') => (rest, "*"),
        None => (rest, "/"),
    };
    let scheme = scheme.to_ascii_lowercase();
    wildcard::fits(&scheme, url.scheme())
        && wildcard::fits(&plain(place, &scheme), &plain(authority(&url), url.scheme()))
        && wildcard::fits(path, &url[Position::BeforePath..Position::AfterQuery])
}

/// Host and port, without a user's name, which may look like a host.
fn authority(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

fn plain(place: &str, scheme: &str) -> String {
    let usual = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        _ => "",
    };
    let place = place.to_ascii_lowercase();
    let place = place.strip_suffix(usual).unwrap_or(&place);
    match place.split_once(':') {
        Some((host, port)) if !host.starts_with('[') => {
            format!("{}:{port}", host.trim_end_matches('.'))
        }
        _ => place.trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    // Mutants: the whole address is compared as one text; case or a final dot counts; the user's name counts as host.
    #[test]
    fn scheme_host_and_path_are_compared_one_by_one() {
        for (pattern, address, expected) in [
            ("https://a.com/*", "https://a.com/b/c", true),
            ("https://a.com/*", "https://a.com", true),
            ("https://a.com", "https://a.com/", true),
            ("https://a.com", "https://a.com/b", false),
            ("https://*.b.com/*", "https://a.b.com/x", true),
            ("https://*.b.com/*", "https://b.com/x", false),
            ("https://*.b.com/*", "https://evil.org/.b.com/x", false),
            ("https://*.b.com/*", "https://evil.org?.b.com/x", false),
            ("https://*.b.com/*", "https://a.b.com@evil.org/x", false),
            ("https://a.com/*", "HTTPS://A.com./x", true),
            ("HTTPS://A.com/*", "https://a.com/x", true),
            ("https://a.com/*", "https://a.com:443/x", true),
            ("https://a.com:443/*", "https://a.com/x", true),
            ("https://a.com/*", "https://a.com:8443/x", false),
            ("https://a.com:*/*", "https://a.com:8443/x", true),
            ("https://a.com/*", "http://a.com/x", false),
            ("*://a.com/*", "wss://a.com/x", true),
            ("http://localhost:*", "http://localhost:3000/mcp", true),
            ("https://*", "https://a.com/x", true),
            ("http://[::1]:3000/*", "http://[::1]:3000/mcp", true),
            ("https://a.com/mcp?k=*", "https://a.com/mcp?k=1#f", true),
            ("*", "no address", true),
            ("*.com*", "no address .com", false),
            ("${URL}", "${URL}", true),
        ] {
            assert_eq!(fits(pattern, address), expected, "{pattern} {address}");
        }
    }
}
