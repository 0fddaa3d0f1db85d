//! The server's storage: event logs, records and timers.
//!
//! [`Store`] is the interface. Several servers may share one store, so appending to a log requires a [`Lease`] on it.
//! A lost lease is *fenced*: the store refuses its appends, however late they arrive. Each event is recorded exactly
//! once; that its effect happens only once is up to the caller.
//!
//! - A **stream** is a log of [`Event`]s, one per session. They are numbered from 1 without gaps and never changed.
//! - A **record** is a small document with a version: a task, an approval, a rule, a user ([`Record`]).
//! - A **due** is a timer that one of the servers performs ([`Due`]).
#![warn(missing_docs)]

#[doc(hidden)]
pub mod contract;
mod due;
mod error;
mod event;
mod name;
mod record;
pub mod sqlite;
mod store;
mod time;

pub use due::{Due, DueClaim};
pub use error::Error;
pub use event::{Body, Event, Lease, NewEvent};
pub use name::{InvalidName, StreamId};
pub use record::{Expected, Filter, Page, Put, Record};
pub use sqlite::Sqlite;
pub use store::Store;
pub use time::Timestamp;
