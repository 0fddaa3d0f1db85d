//! Servers and the client, with each other and with recorded and hostile peers.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod anything;
mod asking;
mod asks;
mod client;
mod newer;
mod notices;
mod oauth;
mod peers;
mod program;
mod recorded;
mod remote;
mod serve_http;
mod served;
mod server;
mod support;
mod tasks;
