//! Where the server may listen. On this machine alone it may; elsewhere everything it says could be read on the way.

use std::net::SocketAddr;

/// Whether the server may listen at an address; what to tell the operator if so.
///
/// # Errors
/// In words, when the address can be reached from elsewhere, there is no TLS, and nobody said that this is meant.
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
            "{address} can be reached from other machines, and without TLS everybody on the way reads tokens and answers; \
             listen at 127.0.0.1 and put a proxy with TLS before it, whose address you name with --public-url \
             https://…, or say that this is meant with --insecure-bind"
        ));
    }
    Ok(Some(format!(
        "{address} is served without TLS, as asked: whoever is on the way can read tokens and take over"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail when an address that means all of them counts as this machine.
    #[test]
    fn other_machines_are_let_in_only_with_tls_or_on_purpose() {
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
