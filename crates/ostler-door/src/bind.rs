//! Checks the address at which the server listens: without TLS, others on the network could read the traffic.

use std::net::SocketAddr;

/// Checks whether the server may listen at an address. Returns a warning for the operator if it may at a risk.
///
/// # Errors
/// A message, if other machines can reach the address, there is no TLS, and the operator did not allow it.
pub fn check(
    address: SocketAddr,
    has_tls: bool,
    is_insecure_meant: bool,
) -> Result<Option<String>, String> {
    let address_of = address.ip().to_canonical();
    if address_of.is_loopback() || has_tls {
        return Ok(None);
    }
    if !is_insecure_meant {
        return Err(format!(
            "{address} can be reached from other machines, and without TLS others on the network can read tokens and answers; \
             listen at 127.0.0.1 behind a proxy with TLS, and name its address with --public-url \
             https://…, or allow it with --insecure-bind"
        ));
    }
    Ok(Some(format!(
        "{address} is served without TLS, as asked: others on the network can read tokens and take over"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail when `0.0.0.0` or `[::]` counts as this machine.
    #[test]
    fn other_machines_can_connect_only_with_tls_or_insecure_bind() {
        let check = |address: &str, tls, meant| check(address.parse().unwrap(), tls, meant);
        for local in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(check(local, false, false), Ok(None), "{local}");
        }
        for open in [
            "0.0.0.0:1",
            "[::]:1",
            "192.0.2.1:1",
            "[2001:db8::1]:1",
            "10.0.0.1:1",
            "[::ffff:10.0.0.1]:1",
        ] {
            assert!(check(open, false, false).is_err(), "{open}");
            assert_eq!(check(open, true, false), Ok(None), "{open}");
            assert!(check(open, false, true).unwrap().unwrap().contains("without TLS"), "{open}");
        }
    }
}
