//! The only way out of a sandbox: a proxy that lets through allowed host names.
//!
//! A sandbox has no route to any network. What it has is a Unix socket with a [`Proxy`] behind it, and inside a
//! [`bridge`] that makes a TCP port of it for programs that know proxies only as `host:port` ([`variables`]).
//!
//! - `host` and [`rules`] judge what a client wrote: exact names and `*.` patterns, denied before allowed, nothing that has
//!   two readings. [`address`] judges what a name leads to: no address of this machine, of its network or of a cloud's
//!   metadata service, unless the operator names it.
//! - `gate` is the only place that dials: it judges, asks, resolves once, checks, and connects to an address that it checked.
//! - `http` (CONNECT and plain requests) and `socks` (SOCKS5) share one socket; the first byte tells them apart.
//! - Hosts on neither list are a question to the user ([`ProxyBuilder::asker`]); what happened is in [`Proxy::events`].
//!
//! What it does not do: it does not look into tunnels. A program can send any protocol to an allowed host, and over TLS can name
//! another host of the same server (domain fronting).
//!
//! ```
//! use ostler_egress::{HostAnswer, HostOutcome, HostRules, Proxy, bridge, variables};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let rules = HostRules::from_lists(["crates.io", "*.crates.io"], ["evil.crates.io"])?;
//! # let folder = tempfile::tempdir()?;
//! # let socket = folder.path().join("private/proxy.sock");
//! let proxy = Proxy::builder(rules)
//!     .asker(|request| async move {
//!         // A user interface goes here.
//!         if request.host == "docs.rs" { HostAnswer::AllowSession } else { HostAnswer::Deny }
//!     })
//!     .start(&socket)?;
//! let mut events = proxy.events();
//!
//! // Inside the sandbox, in a process of its own:
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let port = listener.local_addr()?.port();
//! std::thread::spawn(move || bridge::serve(&listener, &socket, bridge::CONNECTIONS));
//! let environment = variables(port); // for the command
//!
//! # use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//! # let mut command = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
//! # command.write_all(b"CONNECT evil.crates.io:443 HTTP/1.1\r\nConnection: close\r\n\r\n").await?;
//! # let mut answer = String::new();
//! # command.read_to_string(&mut answer).await?;
//! # assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
//! // After the command, which tried to reach evil.crates.io:
//! let (events, _) = events.take();
//! assert_eq!(events[0].host, "evil.crates.io");
//! assert_eq!(events[0].outcome, HostOutcome::Denied);
//! assert_eq!(events[0].reason, "sandbox.network.deniedDomains contains evil.crates.io");
//! # Ok(()) })
//! # }
//! ```
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!(
    "ostler-egress runs on Unix only (Linux, macOS): it listens on Unix sockets. On Windows, use WSL"
);

pub mod address;
mod ask;
pub mod bridge;
mod connection;
mod end;
mod events;
mod gate;
mod host;
mod http;
mod network;
mod proxy;
mod refusal;
pub mod rules;
mod socks;
mod tunnel;
mod user_proxy;
mod variables;

pub use self::ask::{HostAnswer, HostRequest};
pub use self::connection::Limits;
pub use self::events::{EventReader, HostEvent, HostOutcome};
pub use self::host::{Host, HostError, Target};
pub use self::network::{Network, SystemNetwork};
pub use self::proxy::{Proxy, ProxyBuilder, StartError};
pub use self::rules::{HostPattern, HostRules, PatternError, Verdict};
pub use self::user_proxy::UserProxy;
pub use self::variables::{variables, variables_with_token};
