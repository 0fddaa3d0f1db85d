//! A proxy of the user's own, which decides about hosts in the place of ours.

use std::net::Ipv4Addr;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::connection::Limits;
use crate::end::refuse;
use crate::socks;
use crate::tunnel::tunnel;

/// Ports of this machine on which a proxy of the user listens, by its protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserProxy {
    /// For HTTP CONNECT and plain HTTP requests.
    pub http: Option<u16>,
    /// For SOCKS5.
    pub socks: Option<u16>,
}

impl UserProxy {
    /// Passes a connection on by the protocol of its first byte.
    pub(crate) async fn pass_on(self, client: UnixStream, first: u8, limits: Limits) {
        let (port, name) = match first {
            socks::VERSION => (self.socks, "SOCKS5"),
            _ => (self.http, "HTTP"),
        };
        let Some(port) = port else {
            let text = format!("The settings name no {name} proxy.");
            return refuse(client, "502 Bad Gateway", &text).await;
        };
        let connecting = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        match timeout(limits.connect, connecting).await {
            Ok(Ok(server)) => tunnel(client, server, limits.half_closed).await,
            _ => {
                let text = format!(
                    "The {name} proxy that the settings name does not answer on port {port}."
                );
                tracing::warn!(port, "the user's own proxy of a sandbox does not answer");
                refuse(client, "502 Bad Gateway", &text).await;
            }
        }
    }
}
