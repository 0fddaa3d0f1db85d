//! Attacks that are really run in a sandbox.

mod stage;
mod escapes;
