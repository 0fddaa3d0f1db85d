//! The server: runs of the agent for several users, on one log of events.
//!
//! This crate puts the parts together and starts them: `ostler-door` identifies callers, `ostler-api` answers them, and
//! `ostler-core` does the work as a client of the SDK. The engine may be another program.

mod assemble;
mod server;
mod start_error;

/// The AG-UI endpoint.
pub mod agui {
    pub use ostler_api::agui::{AgUi, Approvals, Busy, Caller, Config, Disconnect, Memory};
}

pub use ostler_core::{checkup, config, log_writer, upkeep};

pub use self::server::Server;
pub use self::start_error::StartError;
