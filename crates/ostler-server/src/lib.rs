//! The server: runs of the agent for several people, on one log of events.
//!
//! It is one more client of the SDK: nothing here reaches into the engine, and the engine may as well be another program.

pub mod agui;
