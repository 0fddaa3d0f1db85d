//! An HTTP server that answers with arbitrary bytes, for answers that scripts cannot describe: floods, decompression
//! bombs and endless streams. Repeated parts need no additional memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The answer of a [`RawApi`] to one request.
#[derive(Clone, Debug)]
pub struct RawReply {
    /// The HTTP status.
    pub status: u16,
    /// Headers, each as `name: value`.
    pub headers: Vec<String>,
    /// The parts of the body. The end of the connection ends the body.
    pub parts: Vec<RawPart>,
    /// Whether the connection is reset at the end instead of being closed.
    pub resets: bool,
}

/// A part of a body.
#[derive(Clone, Debug)]
pub struct RawPart {
    /// The bytes.
    pub bytes: Bytes,
    /// How often they are sent.
    pub times: u64,
    /// The pause after each repetition.
    pub pause: Duration,
}

impl RawReply {
    /// An event stream with these parts.
    pub fn events(parts: Vec<RawPart>) -> Self {
        let headers = vec!["content-type: text/event-stream".to_owned()];
        Self { status: 200, headers, parts, resets: false }
    }

    /// A body of JSON.
    pub fn json(parts: Vec<RawPart>) -> Self {
        let headers = vec!["content-type: application/json".to_owned()];
        Self { status: 200, headers, parts, resets: false }
    }

    /// Adds a header.
    pub fn header(mut self, header: impl Into<String>) -> Self {
        self.headers.push(header.into());
        self
    }

    /// Resets the connection at the end of the body.
    pub fn reset(mut self) -> Self {
        self.resets = true;
        self
    }

    /// Changes the status.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}

impl RawPart {
    /// Bytes that are sent once.
    pub fn once(bytes: impl Into<Bytes>) -> Self {
        Self::repeated(bytes, 1)
    }

    /// Bytes that are sent `times` times.
    pub fn repeated(bytes: impl Into<Bytes>, times: u64) -> Self {
        Self { bytes: bytes.into(), times, pause: Duration::ZERO }
    }

    /// Sets the pause after each repetition.
    pub fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

/// Answers every request with the result of a function, which gets the request's number, from 0, and its body. Dropping
/// it ends the server.
#[derive(Debug)]
pub struct RawApi {
    url: String,
    n_requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl RawApi {
    /// Starts on a free loopback port.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(answer: impl Fn(usize, &[u8]) -> RawReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound port"));
        let n_requests = Arc::new(AtomicUsize::new(0));
        let (count, answer) = (Arc::clone(&n_requests), Arc::new(answer));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (count, answer) = (Arc::clone(&count), Arc::clone(&answer));
                connections.spawn(async move {
                    // Clients that leave early are expected.
                    let _ = serve(stream, &count, &*answer).await;
                });
            }
        });
        Self { url, n_requests, task }
    }

    /// The URL of the server.
    pub fn base_url(&self) -> String {
        self.url.clone()
    }

    /// How many requests have arrived.
    pub fn n_requests(&self) -> usize {
        self.n_requests.load(Ordering::SeqCst)
    }
}

impl Drop for RawApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    count: &AtomicUsize,
    answer: &(dyn Fn(usize, &[u8]) -> RawReply + Send + Sync),
) -> std::io::Result<()> {
    let body = read_request(&mut stream).await?;
    let reply = answer(count.fetch_add(1, Ordering::SeqCst), &body);
    let mut head = format!("HTTP/1.1 {} Scripted\r\nconnection: close\r\n", reply.status);
    for header in &reply.headers {
        head += &format!("{header}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    for part in reply.parts {
        for _ in 0..part.times {
            stream.write_all(&part.bytes).await?;
            if !part.pause.is_zero() {
                tokio::time::sleep(part.pause).await;
            }
        }
    }
    if reply.resets {
        // With a linger time of zero, closing the connection resets it.
        stream.set_zero_linger()?;
        return Ok(());
    }
    stream.shutdown().await
}

/// Reads one request and returns its body.
async fn read_request(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let n_read = stream.read(&mut chunk).await?;
        bytes.extend_from_slice(&chunk[..n_read]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            if n_read == 0 {
                return Ok(Vec::new());
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        let mut body = bytes.split_off(end + 4);
        let rest = length - body.len().min(length);
        let have = body.len();
        body.resize(have + rest, 0);
        stream.read_exact(&mut body[have..]).await?;
        return Ok(body);
    }
}
