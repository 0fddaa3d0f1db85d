//! Where the browser comes back after signing in: a port of this machine that takes one answer.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long the user may take.
const LIMIT: Duration = Duration::from_secs(600);
/// How long one connection may take to send its request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of a request that are read.
const MOST_BYTES: usize = 16 * 1024;

const PAGE: &str = "<!doctype html><meta charset=\"utf-8\"><title>Ostler</title>\
                    <p>You can close this window and return to Ostler.</p>";

/// A port of this machine that waits for the browser.
pub(in super::super) struct Callback {
    listeners: (TcpListener, Option<TcpListener>),
    port: u16,
}

impl Callback {
    /// Opens this port, or any.
    pub(in super::super) async fn open(port: Option<u16>) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot open a port for the browser: {error}");
        let wanted = (Ipv4Addr::LOCALHOST, port.unwrap_or_default());
        let first = TcpListener::bind(wanted).await.map_err(failed)?;
        let port = first.local_addr().map_err(failed)?.port();
        // Browsers may try the other address of `localhost` first. Not every machine has it.
        let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
        Ok(Self { listeners: (first, second), port })
    }

    pub(in super::super) fn port(&self) -> u16 {
        self.port
    }

    pub(in super::super) fn redirect_uri(&self) -> String {
        format!("http://localhost:{}/callback", self.port)
    }

    /// Waits for the browser; returns the address that it was sent to. Only one with the right `state` counts: any
    /// program of this machine, and any web page, can send requests to this port.
    pub(in super::super) async fn wait(self, state: &str) -> Result<String, String> {
        let waiting = async {
            loop {
                let accepted = match &self.listeners {
                    (first, Some(second)) => tokio::select! {
                        accepted = first.accept() => accepted,
                        accepted = second.accept() => accepted,
                    },
                    (first, None) => first.accept().await,
                };
                let Ok((stream, _)) = accepted else { continue };
                let answered = tokio::time::timeout(REQUEST_LIMIT, self.answer(stream, state));
                if let Ok(Some(address)) = answered.await {
                    return address;
                }
            }
        };
        let late =
            || format!("the browser did not come back within {} minutes", LIMIT.as_secs() / 60);
        tokio::time::timeout(LIMIT, waiting).await.map_err(|_| late())
    }

    async fn answer(&self, mut stream: TcpStream, state: &str) -> Option<String> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && request.len() < MOST_BYTES {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).await.ok()?;
            request.extend_from_slice(&bytes[..count]);
            if count == 0 {
                break;
            }
        }
        let address = address(&String::from_utf8_lossy(&request), self.port, state);
        let status = if address.is_some() { "200 OK" } else { "404 Not Found" };
        let page = if address.is_some() { PAGE } else { "" };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
        // The browser may be gone already; its answer counts.
        stream.write_all(answer.as_bytes()).await.ok();
        stream.shutdown().await.ok();
        address
    }
}

/// The address in a request, if it is the one that the browser is led back to.
fn address(request: &str, port: u16, state: &str) -> Option<String> {
    let path = request.strip_prefix("GET ")?.split(' ').next()?;
    let path = path.strip_prefix("/callback?")?;
    let address = format!("http://localhost:{port}/callback?{path}");
    let url = reqwest::Url::parse(&address).ok()?;
    let has_state = url.query_pairs().any(|(key, value)| key == "state" && value == state);
    has_state.then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: `address` does not compare the state.
    #[tokio::test]
    async fn only_the_browser_with_the_right_state_comes_back() {
        let callback = Callback::open(None).await.unwrap();
        let port = callback.port();
        let ask = |path: &'static str| async move {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let asking = async {
            for path in ["/", "/favicon.ico", "/callback", "/callback?code=c&state=forged"] {
                assert!(ask(path).await.starts_with("HTTP/1.1 404"), "{path}");
            }
            assert!(ask("/callback?code=c&state=s%2B1").await.starts_with("HTTP/1.1 200"));
        };
        let (address, ()) = tokio::join!(callback.wait("s+1"), asking);
        let expected = format!("http://localhost:{port}/callback?code=c&state=s%2B1");
        assert_eq!(address.unwrap(), expected);
    }
}
