//! The SDK against engines that misbehave.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod answers;
mod callbacks;
mod errors;
mod fake;
mod fold;
mod options;
mod requests;
mod session_store;
mod slow;
mod unanswered;
mod versions;
