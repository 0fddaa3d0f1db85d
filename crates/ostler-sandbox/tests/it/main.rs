//! Attacks that are really run in a sandbox.

mod escapes;
mod stage;
