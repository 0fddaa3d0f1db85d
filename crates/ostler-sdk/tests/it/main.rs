//! The SDK against engines that misbehave.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod errors;
mod fake;
mod options;
mod slow;
