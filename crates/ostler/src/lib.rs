//! Ostler: an agent in your program.
//!
//! This is the Claude Agent SDK for Rust, with the engine that runs the agent built in: no other program is needed.
//!
//! ```
//! # async fn example() -> Result<(), ostler::Error> {
//! let mut messages = ostler::query("What is in this folder?", ostler::options());
//! while let Some(message) = messages.next().await {
//!     if let Some(text) = message?.text() {
//!         println!("{text}");
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! [`options`] are those of the SDK with the embedded engine chosen; [`Options::new`] runs an executable instead.
#![warn(missing_docs)]

pub mod engine;

pub use ostler_proto as proto;
pub use ostler_sdk::*;

/// Options for a session whose engine runs inside this process.
pub fn options() -> Options {
    Options::new().transport(engine::Embedded)
}
