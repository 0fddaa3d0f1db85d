//! Connections: how many there may be, how long a request's head may take, and how they end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::write_timeout::WriteTimeout;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The maximum number at a time; further ones wait in the kernel's queue.
    pub most: usize,
    /// How long the head of a request may take, and how long a connection may be idle between requests.
    pub head: Duration,
    /// The maximum size of a head, in bytes.
    pub head_bytes: usize,
    /// The size of a connection's buffer, in addition to what its handler holds. The kernel may hold as much again;
    /// without this limit it would hold megabytes for a client that does not read.
    pub buffer_bytes: usize,
    /// How long a client may read nothing of what is sent to it.
    pub write: Duration,
    /// How long requests may continue after the server was asked to stop.
    pub drain: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            most: 8_192,
            head: Duration::from_secs(30),
            head_bytes: 64 * 1024,
            buffer_bytes: 128 * 1024,
            write: Duration::from_secs(30),
            drain: Duration::from_secs(10),
        }
    }
}

/// Answers requests until the token fires, then lets running requests end.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(limits.most));
    let mut connections = JoinSet::new();
    loop {
        let permit = tokio::select! {
            () = stop.cancelled() => break,
            permit = Arc::clone(&room).acquire_owned() => permit.expect("the semaphore is never closed"),
        };
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    after(&error).await;
                    continue;
                }
            },
        };
        let (app, stop) = (app.clone(), stop.clone());
        connections.spawn(async move {
            connection(stream, peer, app, limits, stop).await;
            drop(permit);
        });
        // Removes the tasks of connections that have ended.
        while connections.try_join_next().is_some() {}
    }
    // Closes the port first, so that clients do not connect to a server that is stopping.
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain, all_ended).await.is_err() {
        connections.shutdown().await;
    }
}

/// A client that disconnected at once is ignored. A process without free file descriptors waits a moment.
async fn after(error: &std::io::Error) {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Limits how much of a response the kernel buffers before the client reads. Bytes in transit to a client that reads
/// are not limited, so the connection stays as fast as before.
#[cfg(target_os = "linux")]
fn limit_unsent(stream: &TcpStream, bytes: usize) {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    // If the system does not support it, the buffer is larger, and nothing else changes.
    _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(bytes);
}

#[cfg(not(target_os = "linux"))]
fn limit_unsent(_: &TcpStream, _: usize) {}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    // Events are small and urgent.
    _ = stream.set_nodelay(true);
    limit_unsent(&stream, limits.buffer_bytes);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let app = app.clone();
        let request: Request = request.map(Body::new);
        async move {
            Ok::<_, Infallible>(app.oneshot(request).await.unwrap_or_else(|never| match never {}))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_header_size(limits.head_bytes)
        // The limit of memory that one slow client can use.
        .max_buf_size(limits.buffer_bytes)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, limits.write)), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // An error of the connection is not reported: the routes were notified already.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    _ = connection.await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Notify;

    use super::*;

    async fn started(
        app: Router,
        limits: ConnectionLimits,
    ) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(listener, app, limits, stop.clone()));
        (address, stop, task)
    }

    async fn rest(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    // Seen to hang without the timer.
    #[tokio::test]
    async fn a_connection_with_an_endless_head_is_closed() {
        let limits =
            ConnectionLimits { head: Duration::from_millis(50), ..ConnectionLimits::default() };
        let (address, ..) = started(Router::new(), limits).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
        // Only the end of the connection matters, not the response.
        rest(stream).await;
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_refused() {
        let app = Router::new().route("/", get(|| async { "here" }));
        let (address, ..) = started(app, ConnectionLimits::default()).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(100_000));
        _ = stream.write_all(head.as_bytes()).await;
        // The response may be lost, because the server stops reading; in no case is it that of the route.
        let answer = rest(stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }

    // Mutant: `connection` without the `WriteTimeout`; the route then never ends.
    #[tokio::test]
    async fn a_client_that_never_reads_is_dropped() {
        let ended = Arc::new(Notify::new());
        struct Ends(Arc<Notify>);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let gate = Arc::clone(&ended);
        let endless = move || {
            let ends = Ends(Arc::clone(&gate));
            let pieces = futures::stream::repeat_with(move || {
                let _until_dropped = &ends;
                Ok::<_, Infallible>(bytes::Bytes::from_static(&[b'x'; 64 * 1024]))
            });
            async { Body::from_stream(pieces) }
        };
        let app = Router::new().route("/", get(endless));
        let limits =
            ConnectionLimits { write: Duration::from_millis(100), ..ConnectionLimits::default() };
        let (address, ..) = started(app, limits).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        tokio::time::timeout(Duration::from_secs(60), ended.notified()).await.unwrap();
        drop(stream);
    }

    // Seen to fail when the permit is dropped at once.
    #[tokio::test]
    async fn further_connections_wait_until_one_ends() {
        let app = Router::new().route("/", get(|| async { "here" }));
        let limits = ConnectionLimits { most: 1, ..ConnectionLimits::default() };
        let (address, ..) = started(app, limits).await;
        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(REQUEST).await.unwrap();
        let mut head = [0; 12];
        first.read_exact(&mut head).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut nothing = [0; 1];
        let waiting = tokio::time::timeout(Duration::from_millis(200), second.read(&mut nothing));
        assert!(waiting.await.is_err(), "the second one waits");
        drop(first);
        assert!(rest(second).await.ends_with("here"));
    }

    #[tokio::test]
    async fn on_stop_running_requests_end_and_no_new_ones_begin() {
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let gates = (Arc::clone(&begun), Arc::clone(&go_on));
        let handler = move || {
            let (begun, go_on) = gates.clone();
            async move {
                begun.notify_one();
                go_on.notified().await;
                "done"
            }
        };
        let app = Router::new().route("/", get(handler));
        let (address, stop, task) = started(app, ConnectionLimits::default()).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        begun.notified().await;
        stop.cancel();
        go_on.notify_one();
        assert!(rest(stream).await.ends_with("done"));
        task.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn requests_that_do_not_end_are_aborted() {
        let begun = Arc::new(Notify::new());
        let gate = Arc::clone(&begun);
        let app = Router::new().route(
            "/",
            get(move || {
                let gate = Arc::clone(&gate);
                async move {
                    gate.notify_one();
                    std::future::pending::<()>().await;
                }
            }),
        );
        let limits =
            ConnectionLimits { drain: Duration::from_millis(50), ..ConnectionLimits::default() };
        let (address, stop, task) = started(app, limits).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(REQUEST).await.unwrap();
        begun.notified().await;
        stop.cancel();
        task.await.unwrap();
        assert_eq!(rest(stream).await, "");
    }
}
