//! The `ostler` program as a process: what a newcomer types, and what they see.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod abandoned;
mod backends;
mod checkpoints;
mod demo;
mod doctor;
mod hooks;
mod judge;
mod key;
mod kills;
mod mcp;
mod model;
mod offers;
mod pipe;
mod places;
mod record;
mod requests;
mod rules;
mod run;
mod sessions;
mod signals;
mod spare;
mod start;
mod talk;
mod task;
mod terminal;
mod tmux;
mod wire;
mod writing;
