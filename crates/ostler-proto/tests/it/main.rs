//! Integration tests of the wire protocol: recorded traffic, random traffic.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod fixtures;
mod random;
mod recorded;
