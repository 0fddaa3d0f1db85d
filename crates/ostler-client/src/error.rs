//! Why a request had no result.

/// Why a request had no result. The text is for people; what to do about it is up to the program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not the address of a server.
    #[error("{0} is no address of a server: write http://127.0.0.1:8300")]
    Address(String),
    /// Nothing listens at the address.
    #[error("there is no server at {0}")]
    NoServer(String),
    /// The connection ended before the answer did.
    #[error("the connection to {address} broke: {cause}")]
    Broken {
        /// The address of the server.
        address: String,
        /// What the HTTP client reports.
        cause: reqwest::Error,
    },
    /// The answer is not one of an Ostler server.
    #[error("what answers at {0} is no ostler server")]
    NotOstler(String),
    /// The server says no.
    #[error("{text}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's message, with the field that is wrong and a hint.
        text: String,
    },
    /// The beginning of an id fits nothing, or more than one thing.
    #[error("{0}")]
    Id(String),
    /// The request could not be made.
    #[error("{0}")]
    Request(String),
}
