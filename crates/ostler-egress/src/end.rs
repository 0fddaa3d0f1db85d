//! The end of a connection that no protocol serves.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long, and how much, is read from a client that was refused.
const REFUSAL: Duration = Duration::from_secs(1);
const MOST_UNREAD: u64 = 64 * 1024;

/// Tells a client of HTTP why it is refused, and ends the connection.
pub(crate) async fn refuse(mut stream: UnixStream, status: &str, text: &str) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close");
    // The client may be gone.
    _ = stream.write_all(format!("{head}\r\n\r\n{text}\n").as_bytes()).await;
    _ = stream.shutdown().await;
    // What is left unread would make the system drop the answer.
    let mut rest = stream.take(MOST_UNREAD);
    _ = timeout(REFUSAL, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
