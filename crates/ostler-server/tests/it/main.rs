//! The server from outside.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod agui;
