//! The proxy over real sockets: our own raw clients, and programs of other people.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod address;
mod ask;
mod bridge;
mod foreign;
mod hostile;
mod http;
mod lifecycle;
mod property;
mod rules;
mod socks;
mod support;
mod tricks;
mod user_proxy;
