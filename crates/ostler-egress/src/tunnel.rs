//! Bytes in both directions between a client and a server, with half-closed connections.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The size of the buffer for one direction.
const BUFFER: usize = 16 * 1024;

/// Copies until both sides have ended, one fails, or only one has ended and the other is idle for `half_closed`: a client
/// that was killed looks like one that has sent everything.
pub(crate) async fn tunnel<C>(client: C, server: TcpStream, half_closed: Duration)
where
    C: AsyncRead + AsyncWrite,
{
    let (client_reader, client_writer) = split(client);
    let (server_reader, server_writer) = server.into_split();
    let progress = AtomicU64::new(0);
    let mut up = pin!(copy(client_reader, server_writer, &progress));
    let mut down = pin!(copy(server_reader, client_writer, &progress));
    tokio::select! {
        result = &mut up => if result.is_ok() { rest(down, &progress, half_closed).await },
        result = &mut down => if result.is_ok() { rest(up, &progress, half_closed).await },
    }
}

/// Waits for the direction that is left, as long as it makes progress.
async fn rest(
    mut copying: impl Future<Output = io::Result<()>> + Unpin,
    progress: &AtomicU64,
    idle: Duration,
) {
    loop {
        let before = progress.load(Ordering::Relaxed);
        if timeout(idle, &mut copying).await.is_ok() || progress.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

/// Copies one direction to its end, and passes the end on.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    progress: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
        progress.fetch_add(1, Ordering::Relaxed);
    }
}
