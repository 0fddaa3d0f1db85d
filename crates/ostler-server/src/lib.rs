//! The server: runs of the agent for several people, on one log of events.
//!
//! It is one more client of the SDK: nothing here reaches into the engine, and the engine may as well be another program.

pub mod agui;
mod app;
mod approvals;
mod assemble;
pub mod checkup;
mod clock;
pub mod config;
mod confine;
mod courier;
mod forget;
mod hooks;
mod http;
mod log;
pub mod log_writer;
mod log_writers;
mod memory;
mod metrics;
mod model;
mod nightly;
mod proxy;
mod records;
mod removed_users;
mod runs;
mod schedules;
mod server;
mod session_room;
mod spaces;
mod start;
mod start_error;
mod tasks;
pub mod upkeep;
mod webhook;

pub use self::server::Server;
pub use self::start_error::StartError;
