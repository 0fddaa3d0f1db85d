//! What the server remembers: logs of events, records, and timers.
//!
//! [`Store`] is the narrow door to it. Nothing behind the door may be taken for granted: there may be several servers on
//! one store, so whoever writes to a log holds a [`Lease`] on it, and a lease that was lost is *fenced*: what it
//! writes is refused, however late it arrives. What happens is recorded exactly once; that it is *done* only once is
//! up to whoever does it.
//!
//! - A **stream** is a log of [`Event`]s, one per session. They are numbered from 1 without gaps, and only ever added.
//! - A **record** is a small document with a version: a task, an approval, a rule, a user ([`Record`]).
//! - A **due** is something to be done at a time, by one of the servers ([`Due`]).
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
