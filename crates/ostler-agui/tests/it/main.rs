//! Tests of the crate from outside.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod any_stream;
mod input;
mod order;
mod recorded;
mod rows;
mod run;
mod schemas;
