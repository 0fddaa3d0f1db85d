//! Why a request failed.

/// Why a request failed. The text is for people; the program decides what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not the address of a server.
    #[error("{0} is not a server address; write it as http://127.0.0.1:8300")]
    Address(String),
    /// Nothing listens at the address.
    #[error("there is no server at {0}")]
    NoServer(String),
    /// The connection ended before the response did.
    #[error("the connection to {address} broke: {cause}")]
    #[non_exhaustive]
    Broken {
        /// The address of the server.
        address: String,
        /// What the HTTP client reports.
        cause: reqwest::Error,
    },
    /// The response does not come from an Ostler server.
    #[error("{0} answers, but is not an ostler server")]
    NotOstler(String),
    /// The server refuses.
    #[error("{text}")]
    #[non_exhaustive]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's message, with the field that is wrong and a hint.
        text: String,
    },
    /// The beginning of an id matches nothing, or more than one id.
    #[error("{0}")]
    Id(String),
    /// The request could not be made.
    #[error("{0}")]
    Request(String),
}
