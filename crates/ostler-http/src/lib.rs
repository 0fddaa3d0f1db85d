//! HTTP clients with TLS.
//!
//! `reqwest` is built without a cryptography provider here, and would use the default of the process. A library must
//! not install a default: the program that it is part of may install its own later, and would fail. So every client
//! gets a TLS configuration: with the program's provider if there is one, and with `ring` otherwise.

use std::net::IpAddr;
use std::sync::Arc;

use reqwest::Url;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The certificates with which a client verifies servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// Those of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    System,
    /// None, for a client that never uses TLS: reading those of the system is slow.
    None,
}

/// The system's certificates could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot prepare TLS: {0}")]
pub struct TlsError(#[from] rustls::Error);

/// A builder for a client.
///
/// ```
/// use ostler_http::{Certificates, client};
///
/// let client = client(Certificates::None)?.no_proxy().build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the system's certificates cannot be read.
pub fn client(certificates: Certificates) -> Result<reqwest::ClientBuilder, TlsError> {
    let tls = tls(certificates)?;
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls))
}

/// Whether a URL names this machine: `localhost` or a loopback address. Names are not resolved.
pub fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A TLS configuration for connections that are not HTTP, such as WebSockets, with the certificates of the system.
///
/// # Errors
/// When the system's certificates cannot be read.
pub fn tls_for_sockets() -> Result<ClientConfig, TlsError> {
    let mut tls = tls(Certificates::System)?;
    // A server that chooses HTTP/2 could not change to a WebSocket.
    tls.alpn_protocols.clear();
    Ok(tls)
}

fn tls(certificates: Certificates) -> Result<ClientConfig, TlsError> {
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(ring::default_provider()));
    let tls =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut tls = match certificates {
        Certificates::System => tls.with_platform_verifier()?.with_no_client_auth(),
        Certificates::None => {
            tls.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    };
    // `reqwest` offers HTTP/2 only in its own configurations.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_localhost_and_loopback_addresses_are_this_machine() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://127.9.9.9", true),
            ("https://[::1]:1", true),
            ("http://localhost", true),
            ("http://api.localhost", false),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_this_machine(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    // One test, because the default belongs to the process.
    #[test]
    fn a_client_uses_the_default_of_the_process_and_does_not_change_it() {
        for certificates in [Certificates::System, Certificates::None] {
            client(certificates).unwrap().build().unwrap();
        }
        assert!(CryptoProvider::get_default().is_none());
        let mut own = ring::default_provider();
        own.cipher_suites.truncate(1);
        own.install_default().expect("nothing has installed one");
        let tls = tls(Certificates::None).unwrap();
        assert_eq!(tls.crypto_provider().cipher_suites.len(), 1, "the program's own choice");
    }
}
