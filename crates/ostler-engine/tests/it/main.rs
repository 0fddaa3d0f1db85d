//! The engine against the scripted Messages API, over real HTTP.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod agents;
mod answers;
mod api_errors;
mod bodies;
mod commands;
mod compact;
mod decisions;
mod disk;
mod everyday;
mod faults;
mod files;
mod held_once;
mod hooks;
mod host;
mod hostile_model;
mod interrupts;
mod limits;
mod long;
mod mcp;
mod mcp_fleet;
mod mcp_life;
mod mcp_offer;
mod model;
mod modes;
mod odd_calls;
mod panics;
mod record;
mod rounds;
mod session;
mod settings;
mod starts;
mod store;
mod structured;
mod tasks;
mod tasks_together;
mod tools;
