//! The wire protocol.
#![warn(missing_docs)]

pub mod agent;
pub mod api;
pub mod codec;
pub mod control;
pub mod drift;
mod error;
pub mod frame;
pub mod hook;
mod ids;
pub mod mcp;
pub mod message;
mod num;
pub mod peer;
pub mod permission;
pub mod quirks;
pub mod sandbox;
pub mod tool;
pub mod transcript;
pub mod wire;

pub use self::error::DecodeError;
pub use self::ids::*;
pub use self::num::Num;
pub use self::wire::{Extra, UnknownObject};
