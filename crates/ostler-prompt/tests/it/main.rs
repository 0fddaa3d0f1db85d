//! Typed prompts with the scripted Messages API, and with engines that are shell scripts.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod answers;
mod changes;
mod chapter;
mod config;
mod errors;
mod events;
mod examples;
mod exits;
mod explicit;
mod fake;
mod forms;
mod hooks;
mod limitations;
mod mounts;
mod security;
mod spans;
mod stage;
mod story;
mod tools;
