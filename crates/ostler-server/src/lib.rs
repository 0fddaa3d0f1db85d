//! The server: runs of the agent for several people, on one log of events.
//!
//! It is one more client of the SDK: nothing here reaches into the engine, and the engine may as well be another program.

pub mod agui;
mod assemble;
mod http;
mod server;
mod start_error;

pub use ostler_core::{checkup, config, log_writer, upkeep};

pub use self::server::Server;
pub use self::start_error::StartError;
