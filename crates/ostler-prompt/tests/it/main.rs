//! Typed prompts against the scripted Messages API.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod stage;
mod story;
