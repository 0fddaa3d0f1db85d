//! The network behind the proxy, as a trait: tests and embedders can replace how names are resolved and how connections
//! are made. The checks stay outside of it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpStream;

/// Resolves names and connects. Both are called for allowed hosts and checked addresses only.
pub trait Network: Send + Sync {
    /// The addresses of a name, in the order in which to try them.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Connects to an address.
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;

    /// Whether an address belongs to an interface of this machine, which a sandbox must not reach.
    ///
    /// # Errors
    /// If that is unknown; then the address is not dialled.
    fn is_own(&self, address: IpAddr) -> io::Result<bool>;
}

/// The system's resolver and the system's connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNetwork;

impl Network for SystemNetwork {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            let mut addresses: Vec<IpAddr> = found.map(|it| it.ip()).collect();
            addresses.dedup();
            Ok(addresses)
        }
        .boxed()
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            // A tunnel may be idle for long, but not to a machine that is gone.
            let keepalive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(60));
            socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
            Ok(stream)
        }
        .boxed()
    }

    fn is_own(&self, address: IpAddr) -> io::Result<bool> {
        let any: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        // Sends nothing. The system chooses the address to send from, and to itself a machine sends from the same address.
        match socket.connect((address, 9)) {
            Ok(()) => Ok(socket.local_addr()?.ip() == address),
            // Without a route there is nothing to reach.
            Err(error) if is_unreachable(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable)
}
