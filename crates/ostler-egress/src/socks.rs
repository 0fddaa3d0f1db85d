//! SOCKS5 (RFC 1928): CONNECT with a name, an IPv4 or an IPv6 address. With a token, a user name and a password (RFC 1929), of which
//! the password counts.

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::connection::Connection;
use crate::host::{Host, HostError, Target};
use crate::refusal::Refusal;
use crate::tunnel::tunnel;

pub(crate) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;

/// How much a client may send before it gets an answer.
const MOST_EARLY: u64 = 4 * 1024;

/// Answers to a request.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Reply {
    Succeeded = 0,
    Failure = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    Refused = 5,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

/// Serves a client until its tunnel ends.
pub(crate) async fn serve(mut stream: UnixStream, connection: &Connection) {
    let limits = connection.limits;
    let Ok(Ok(Some(target))) = timeout(limits.request, handshake(&mut stream, connection)).await
    else {
        return;
    };
    let mut early = Vec::new();
    let opened = tokio::select! {
        opened = connection.open(&target) => opened,
        // Withdraws a question of a client that is gone.
        () = closed(&mut stream, &mut early) => return,
    };
    let sent = match opened {
        Ok(server) => begin(&mut stream, server, &early).await,
        Err(refusal) => answer(&mut stream, reply(&refusal)).await.map(|()| None),
    };
    if let Ok(Some(server)) = sent {
        tunnel(stream, server, limits.half_closed).await;
    }
}

/// Accepts the connection, and passes on what the client has already sent.
async fn begin(
    stream: &mut UnixStream,
    mut server: TcpStream,
    early: &[u8],
) -> io::Result<Option<TcpStream>> {
    answer(stream, Reply::Succeeded).await?;
    server.write_all(early).await?;
    Ok(Some(server))
}

/// Ends when the client closes its side. What it sends meanwhile is kept.
async fn closed(stream: &mut UnixStream, early: &mut Vec<u8>) {
    let mut bounded = stream.take(MOST_EARLY);
    while let Ok(count) = bounded.read_buf(early).await {
        if bounded.limit() == 0 {
            // The rest stays in the kernel.
            return std::future::pending().await;
        }
        if count == 0 {
            return;
        }
    }
}

/// The target, or `None` if the client got a refusal already.
async fn handshake(stream: &mut UnixStream, connection: &Connection) -> io::Result<Option<Target>> {
    if !authenticate(stream, connection).await? {
        return Ok(None);
    }
    let [_, command, _, kind] = array(stream).await?;
    let host = match kind {
        1 => Ok(Host::address(IpAddr::from(array::<4>(stream).await?))),
        3 => name(stream, connection).await?,
        4 => Ok(Host::address(IpAddr::from(array::<16>(stream).await?))),
        _ => {
            answer(stream, Reply::AddressNotSupported).await?;
            return Ok(None);
        }
    };
    let port = u16::from_be_bytes(array(stream).await?);
    let target = host.and_then(|host| {
        let text = host.to_string();
        Target::new(host, port).map_err(|error| connection.malformed(&text, error))
    });
    match target {
        Ok(target) if command == 1 => return Ok(Some(target)),
        Ok(target) => {
            let refusal = Refusal::SocksCommand;
            connection.gate.report(&target.host.to_string(), port, Some(&refusal));
            answer(stream, reply(&refusal)).await?;
        }
        Err(refusal) => answer(stream, reply(&refusal)).await?,
    }
    Ok(None)
}

async fn name(
    stream: &mut UnixStream,
    connection: &Connection,
) -> io::Result<Result<Host, Refusal>> {
    let bytes = counted(stream).await?;
    let malformed =
        |error: HostError| connection.malformed(&String::from_utf8_lossy(&bytes), error);
    Ok(Host::from_bytes(&bytes).map_err(malformed))
}

/// Whether the client may continue.
async fn authenticate(stream: &mut UnixStream, connection: &Connection) -> io::Result<bool> {
    let [_version] = array(stream).await?;
    let offered = counted(stream).await?;
    let wanted = if connection.token.is_some() { PASSWORD } else { NO_AUTHENTICATION };
    if !offered.contains(&wanted) {
        stream.write_all(&[VERSION, NO_METHOD]).await?;
        return Ok(false);
    }
    stream.write_all(&[VERSION, wanted]).await?;
    if wanted == NO_AUTHENTICATION {
        return Ok(true);
    }
    let [_version] = array(stream).await?;
    let _user = counted(stream).await?;
    let password = counted(stream).await?;
    let accepted = connection.accepts(Some(&password));
    stream.write_all(&[1, u8::from(!accepted)]).await?;
    Ok(accepted)
}

async fn array<const N: usize>(stream: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// At most 255 bytes after a byte with their number.
async fn counted(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let [count] = array(stream).await?;
    let mut bytes = vec![0; usize::from(count)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn reply(refusal: &Refusal) -> Reply {
    match refusal {
        Refusal::Resolve(_) => Reply::HostUnreachable,
        Refusal::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Reply::Refused
        }
        Refusal::Connect(error) if error.kind() == io::ErrorKind::TimedOut => {
            Reply::HostUnreachable
        }
        Refusal::Connect(_) => Reply::Failure,
        Refusal::SocksCommand => Reply::CommandNotSupported,
        _ => Reply::NotAllowed,
    }
}

async fn answer(stream: &mut UnixStream, reply: Reply) -> io::Result<()> {
    // The address that the proxy uses is not the client's business.
    stream.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
