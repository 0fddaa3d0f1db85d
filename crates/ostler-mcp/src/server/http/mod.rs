//! Serves over streamable HTTP: accepts connections and passes requests on.
//!
//! `endpoint.rs` answers requests, `sessions.rs` has the sessions of clients before MCP 2026-07-28, `guard.rs` says who may
//! send requests at all, `headers.rs` compares headers with the message, and `reply.rs` writes answers.

mod endpoint;
mod guard;
mod headers;
mod reply;
mod sessions;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::endpoint::Endpoint;
use super::Server;

/// How long the head of a request may take, and how long a connection may be idle between requests.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The maximum size of a request's head, in bytes.
const HEAD_BYTES: usize = 32 * 1024;
/// How long requests may continue after the server was asked to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How a server is reached over HTTP, and how much it accepts.
///
/// ```
/// let options = ostler_mcp::HttpOptions::default().token("secret").body_limit(1024 * 1024);
/// ```
#[derive(Clone)]
pub struct HttpOptions {
    path: String,
    token: Option<String>,
    hosts: Vec<String>,
    most_sessions: usize,
    most_connections: usize,
    body_limit: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            token: None,
            hosts: Vec::new(),
            most_sessions: 64,
            most_connections: 256,
            body_limit: 16 * 1024 * 1024,
        }
    }
}

impl HttpOptions {
    /// The path of the endpoint; `/mcp` by default.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// The bearer token that every request must have. An address that other machines can reach needs one.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A further name under which clients reach the server, without a port. Names of this machine itself are always
    /// accepted.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// How many sessions there may be; 64 by default. A further one replaces the one that was not used for the longest
    /// time. If all are in use, it is refused.
    #[must_use]
    pub fn most_sessions(mut self, most: usize) -> Self {
        self.most_sessions = most;
        self
    }

    /// How many connections there may be; 256 by default. Further ones wait.
    #[must_use]
    pub fn most_connections(mut self, most: usize) -> Self {
        self.most_connections = most;
        self
    }

    /// The maximum size of a message, in bytes; 16 MiB by default.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }
}

impl std::fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the token.
        f.debug_struct("HttpOptions").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Server {
    /// Serves clients over streamable HTTP until the token fires: with sessions before MCP 2026-07-28, without since.
    ///
    /// Browsers of other sites cannot use it: requests must name this machine (or [`HttpOptions::host`]) as their host,
    /// and their origin, if they have one, must be the same.
    ///
    /// # Errors
    /// If the address can be reached from other machines and the options have no token.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && options.token.as_ref().is_none_or(String::is_empty) {
            let message = format!(
                "{address} can be reached from other machines, so clients need a token: set one, or listen on 127.0.0.1"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let room = Arc::new(Semaphore::new(options.most_connections));
        let endpoint = Arc::new(Endpoint::new(self.clone(), options, address));
        let mut connections = JoinSet::new();
        loop {
            let permit = tokio::select! {
                () = stop.cancelled() => break,
                permit = Arc::clone(&room).acquire_owned() => {
                    permit.expect("the semaphore is never closed")
                }
            };
            let stream = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // The client is gone, or there are no free file descriptors at the moment.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let (endpoint, stop) = (Arc::clone(&endpoint), stop.clone());
            connections.spawn(async move {
                connection(stream, endpoint, stop).await;
                drop(permit);
            });
            // Removes the tasks of connections that have ended.
            while connections.try_join_next().is_some() {}
        }
        drop(listener);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_ANSWERS, all_ended).await.is_err() {
            connections.shutdown().await;
        }
        Ok(())
    }
}

async fn connection(stream: TcpStream, endpoint: Arc<Endpoint>, stop: CancellationToken) {
    // Events are small and urgent.
    stream.set_nodelay(true).ok();
    let service = service_fn(move |request| {
        let endpoint = Arc::clone(&endpoint);
        async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // An error of the connection concerns its client only.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.ok();
}
