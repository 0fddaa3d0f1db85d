//! The engine against the scripted Messages API, over real HTTP.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod decisions;
mod hooks;
mod host;
mod interrupts;
mod model;
mod session;
mod store;
mod structured;
mod tools;
