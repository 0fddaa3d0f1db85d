//! Records that several parts of the server read and write, and the events of a session's log. Nothing here does anything.

pub(crate) mod event;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod space;
pub(crate) mod tally;
