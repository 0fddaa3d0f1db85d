//! The facade: the SDK with the embedded engine, against the scripted Messages API.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod answers;
mod entries;
mod environment;
mod errors;
mod examples;
mod hostile;
mod servers;
mod sessions;
mod typed;
