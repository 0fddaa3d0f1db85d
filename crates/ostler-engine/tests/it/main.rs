//! The engine against the scripted Messages API, over real HTTP.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod agents;
mod api_errors;
mod bodies;
mod commands;
mod compact;
mod decisions;
mod faults;
mod hooks;
mod host;
mod interrupts;
mod long;
mod model;
mod modes;
mod record;
mod rounds;
mod session;
mod settings;
mod store;
mod structured;
mod tasks;
mod tasks_together;
mod tools;
