//! The core of Ostler's server: everything that it stores and does.
//!
//! [`runs`] performs prompts, with one worker per session, through the SDK. Calls that need approval wait in [`approvals`].
//! [`spaces`] decides where agents work and what they may do; [`schedules`], [`tasks`] and [`hooks`] start runs without a user
//! at the keyboard. [`records`] and [`log`] write to the store before a client sees anything. [`app::App`] holds all parts.
//! HTTP and AG-UI are in `ostler-api`, of which nothing here knows.

pub mod app;
pub mod approvals;
pub mod checkup;
pub mod clock;
pub mod config;
pub mod confine;
mod courier;
pub mod forget;
pub mod hooks;
pub mod log;
pub mod log_writer;
pub mod log_writers;
pub mod mcp_servers;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod nightly;
pub mod proxy;
pub mod records;
pub mod removed_users;
pub mod runs;
pub mod schedules;
pub mod session_room;
pub mod spaces;
pub mod start;
pub mod tasks;
pub mod upkeep;
pub mod webhook;
