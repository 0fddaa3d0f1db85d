//! A client of Ostler's server, over its HTTP interface alone.
//!
//! A [`Client`] sends requests with a token and returns the JSON of the responses. [`Events`] reads a stream of
//! server-sent events, [`approval`] answers pending approvals, and [`token`] reads the token of a server on this
//! machine. Nothing here prints or asks: the program `ostler` does that.
#![warn(missing_docs)]

pub mod approval;
mod client;
mod error;
mod events;
pub mod token;

pub use self::client::{Address, Client, items};
pub use self::error::Error;
pub use self::events::Events;
