//! The scripted API as tests use it: over HTTP, through the library and through the program.

#![allow(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its supporting functions included"
)]

mod control;
mod documents;
mod endpoints;
mod faults;
mod gates;
mod matching;
mod peers;
mod program;
mod recording;
mod streaming;
mod support;
mod uncovered;
mod validation;
mod vendor_requests;
