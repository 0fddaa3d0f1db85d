//! Why a server does not start.

use std::io;
use std::net::SocketAddr;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The folder for its data cannot be used.
    #[error("cannot use {place}: {source}")]
    Folder {
        /// Which.
        place: String,
        /// Why not.
        source: io::Error,
    },
    /// The event log cannot be opened.
    #[error(transparent)]
    Store(#[from] ostler_store::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Agents would have no way to the model.
    #[error("cannot make a way to the model: {0}")]
    Proxy(io::Error),
    /// What is configured is not safe.
    #[error("{0}")]
    Unsafe(String),
    /// The skills cannot be reached.
    #[error("cannot use the skills: {0}")]
    Skills(String),
    /// What was at work before could not be taken up.
    #[error("cannot take up earlier work: {0}")]
    Recovery(String),
}
