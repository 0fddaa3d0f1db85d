//! HTTP clients. Sessions that ask a model on this machine without TLS share one, which is what all sessions of a server
//! do: they ask its proxy. Their connections are as many as requests are under way, not as many as there are sessions.
//!
//! Others have a client each: over HTTP/2 the requests of one client share a connection, and a server limits how many
//! that may be.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ostler_http::Certificates;
use parking_lot::Mutex;
use reqwest::{Client, Url};
use tokio::runtime;

use super::ModelError;

/// The interval and the timeout of keep-alive probes on a connection with a request under way.
const PROBE: Duration = Duration::from_secs(20);

/// The shared clients. A connection ends with the runtime that opened it, so each runtime has its own client.
static SHARED: Mutex<Vec<(runtime::Id, Weak<Client>)>> = Mutex::new(Vec::new());

/// Whether the API is on this machine, where no proxy could reach it.
pub fn is_loopback(url: &Url) -> bool {
    let is_named_so = url.host_str().is_some_and(|host| host.ends_with(".localhost"));
    is_named_so || ostler_http::is_this_machine(url)
}

/// A client for the API at this address.
pub(crate) fn for_address(url: &Url) -> Result<Arc<Client>, ModelError> {
    let is_plain_here = is_loopback(url) && url.scheme() == "http";
    match runtime::Handle::try_current() {
        Ok(runtime) if is_plain_here => shared(runtime.id()),
        // Plain HTTP on this machine needs no certificates.
        _ if is_plain_here => new(Certificates::None, true),
        _ => new(Certificates::System, is_loopback(url)),
    }
}

fn shared(runtime: runtime::Id) -> Result<Arc<Client>, ModelError> {
    let mut clients = SHARED.lock();
    clients.retain(|(_, client)| client.strong_count() > 0);
    let of_runtime = clients.iter().find(|(id, _)| *id == runtime);
    if let Some(client) = of_runtime.and_then(|(_, client)| client.upgrade()) {
        return Ok(client);
    }
    let client = new(Certificates::None, true)?;
    clients.push((runtime, Arc::downgrade(&client)));
    Ok(client)
}

fn new(certificates: Certificates, is_here: bool) -> Result<Arc<Client>, ModelError> {
    let mut client = ostler_http::client(certificates)
        .map_err(|error| ModelError::Connection(error.to_string()))?
        // A redirect would send the key to another address.
        .redirect(reqwest::redirect::Policy::none())
        // Otherwise a dead connection (after the sleep of a laptop or a change of the network) would be used again
        // for every attempt.
        .http2_keep_alive_interval(PROBE)
        .http2_keep_alive_timeout(PROBE);
    if is_here {
        client = client.no_proxy();
    }
    client.build().map(Arc::new).map_err(|error| ModelError::no_connection(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Arc<Client> {
        for_address(&Url::parse(url).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn sessions_share_a_client_for_plain_addresses_of_this_machine() {
        let one = client("http://127.0.0.1:1");
        assert!(Arc::ptr_eq(&one, &client("http://localhost:2")));
        assert!(!Arc::ptr_eq(&one, &client("https://localhost:2")));
        assert!(!Arc::ptr_eq(&one, &client("http://192.0.2.1:1")));
    }

    #[test]
    fn a_client_belongs_to_one_runtime() {
        let runtime = || runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ask = async || client("http://127.0.0.1:1");
        let (first, second) = (runtime(), runtime());
        let kept = first.block_on(ask());
        assert!(Arc::ptr_eq(&kept, &first.block_on(ask())));
        assert!(!Arc::ptr_eq(&kept, &second.block_on(ask())));
        assert!(!Arc::ptr_eq(&kept, &client("http://127.0.0.1:1")), "outside of a runtime");
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://api.localhost", true),
            ("http://localhost.example.com", false),
            ("https://api.anthropic.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
