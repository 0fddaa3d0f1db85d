//! The `ostler` program as a process: what a newcomer types, and what they see.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod abandoned;
mod backends;
mod backup;
mod bounds;
mod checkpoints;
mod demo;
mod doctor;
mod elicitation;
mod endings;
mod flags;
mod hooks;
mod hostile;
mod judge;
mod key;
mod kills;
mod limits;
mod limits_of_serve;
mod mcp;
mod model;
mod offers;
mod passed_pipes;
mod pipe;
mod piped;
mod pipes;
mod places;
mod prices;
mod record;
mod refusal;
mod requests;
mod rules;
mod run;
mod sandbox;
mod sandbox_hosts;
mod serve_options;
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
