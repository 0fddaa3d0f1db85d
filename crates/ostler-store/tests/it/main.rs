//! The store in a folder: the contract, and disk failures.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod backup;
mod clock;
mod contract;
mod crash;
mod disk;
mod folder;
mod forget;
mod model;
mod time;
