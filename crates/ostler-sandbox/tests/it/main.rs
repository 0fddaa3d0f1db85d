//! Attacks that are really run in a sandbox, as the user that runs the tests and, if that is root, as another user too.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod as_user;
mod attempts;
mod containers;
mod escapes;
mod groups;
mod limits;
mod limits_together;
mod masks;
mod network;
mod probe;
mod renounce;
mod stage;
