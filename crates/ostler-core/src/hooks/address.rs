//! Addresses that a user may have this server call: public ones, and not those in the server's own network.
//!
//! A host name is checked when it is resolved for the connection itself, so it cannot resolve to one address in the
//! check and to another in use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ostler_base::error::{ApiError, Fallible};
use ostler_http::{Certificates, TlsError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url};

const FIELD: &str = "callback";

/// Checks the address of a callback.
///
/// # Errors
/// When the address is invalid, or is in the server's own network and that is not allowed.
pub(super) fn callback(text: &str, may_be_inside: bool) -> Fallible<Url> {
    let hint = "such as https://chat.example.org/answers";
    let refused = |what: &str| ApiError::invalid(FIELD, format!("{text} {what}")).hint(hint);
    let url = Url::parse(text).map_err(|_| refused("is not a valid address"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("is not the address of a web server"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("contains a user name or a password"));
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_inside = match host.parse::<IpAddr>() {
        Ok(address) => is_inside(address),
        Err(_) => host.is_empty() || is_own_name(host),
    };
    if is_inside && !may_be_inside {
        let way_out = "the operator allows such addresses with --allow-private-callbacks";
        return Err(refused("is in the server's own network").hint(way_out));
    }
    Ok(url)
}

/// A client that does not connect to addresses in the server's own network, whatever a name resolves to. It uses no
/// proxy, which could not check that.
pub(super) fn client(may_be_inside: bool) -> Result<ClientBuilder, TlsError> {
    let client = ostler_http::client(Certificates::System)?.no_proxy();
    Ok(if may_be_inside { client } else { client.dns_resolver(Outside) })
}

struct Outside;

impl Resolve for Outside {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let outside: Vec<SocketAddr> = found.filter(|it| !is_inside(it.ip())).collect();
            if outside.is_empty() {
                return Err(format!("{} is in the server's own network", name.as_str()).into());
            }
            Ok(Box::new(outside.into_iter()) as Addrs)
        })
    }
}

fn is_own_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost"
        || [".localhost", ".local", ".internal"].iter().any(|end| host.ends_with(end))
}

fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_inside_v4(v4),
        IpAddr::V6(v6) => is_inside_v6(v6),
    }
}

fn is_inside_v4(v4: Ipv4Addr) -> bool {
    let [a, b, ..] = v4.octets();
    v4.is_loopback()
        || v4.is_private()
        || v4.is_link_local()
        || v4.is_documentation()
        || v4.is_multicast()
        || a == 0
        // Shared by providers, for benchmarks and protocols, and reserved.
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (18..20).contains(&b))
        || v4.octets()[..3] == [192, 0, 0]
        || a >= 240
}

/// Accepts only globally routed addresses, and not those that embed an IPv4 address.
fn is_inside_v6(v6: Ipv6Addr) -> bool {
    let [first, second, ..] = v6.segments();
    let is_global = (0x2000..0x4000).contains(&first);
    let is_tunnel = first == 0x2002 || (first == 0x2001 && second < 0x0200);
    let is_documentation = (first == 0x2001 && second == 0x0db8) || first == 0x3fff;
    !is_global || is_tunnel || is_documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail without each of the conditions.
    #[test]
    fn private_addresses_are_refused_in_every_notation() {
        for address in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http://0/",
            "http://10.1.2.3/",
            "http://172.16.0.1/",
            "http://192.168.1.1/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://198.18.0.1/",
            "http://192.0.0.1/",
            "http://192.0.2.1/",
            "http://224.0.0.1/",
            "http://240.0.0.1/",
            "http://255.255.255.255/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[2001::1]/",
            "http://[2001:db8::1]/",
            "http://[3fff::1]/",
            "http://[fe80::1]/",
            "http://[fc00::1]/",
            "http://[ff02::1]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
            "http://printer.local/",
            "http://metadata.google.internal/",
        ] {
            let error = callback(address, false).unwrap_err();
            assert!(error.to_string().contains("own network"), "{address}: {error}");
            assert!(callback(address, true).is_ok(), "{address}, if the operator allows it");
        }
        for address in ["https://example.org/x", "http://93.184.215.14/", "http://[2606:4700::1]/"]
        {
            assert!(callback(address, false).is_ok(), "{address}");
        }
        for odd in ["", "x", "ftp://example.org", "file:///etc/passwd", "http://a:b@example.org/"] {
            assert!(callback(odd, true).is_err(), "{odd}");
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_private_address_is_refused() {
        let name: Name = "localhost".parse().unwrap();
        let Err(error) = Outside.resolve(name).await else { panic!("localhost must be refused") };
        assert!(error.to_string().contains("own network"), "{error}");
    }
}
