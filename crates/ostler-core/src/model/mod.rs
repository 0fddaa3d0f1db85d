//! Records that several parts of the server read and write, and the events of a session's log. Only data, without
//! behaviour.

pub mod event;
pub mod mcp_server;
pub mod policy;
pub mod run;
pub mod space;
pub mod tally;
