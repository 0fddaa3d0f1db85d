//! Why a server does not start.

use std::io;
use std::net::SocketAddr;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data folder cannot be used.
    #[error("cannot use {place}: {source}")]
    Folder {
        /// The path.
        place: String,
        /// The cause.
        source: io::Error,
    },
    /// The event log cannot be opened.
    #[error(transparent)]
    Store(#[from] ostler_store::Error),
    /// The server cannot listen at the address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The proxy to the model cannot start.
    #[error("cannot start the proxy to the model: {0}")]
    Proxy(io::Error),
    /// The configuration is not safe.
    #[error("{0}")]
    Unsafe(String),
    /// The skills cannot be reached.
    #[error("cannot use the skills: {0}")]
    Skills(String),
    /// Earlier work could not be continued.
    #[error("cannot continue earlier work: {0}")]
    Recovery(String),
}
