//! The server as clients know it: over HTTP, against a scripted model.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod agui;
mod approvals;
mod attacks;
mod browser;
mod changes;
mod confined;
mod desk;
mod disk;
mod doctor;
mod door;
mod doors;
mod foreign;
mod forks;
mod grants;
mod hooks;
mod lists;
mod mounts;
mod pieces;
mod proxy;
mod public_url;
mod reach;
mod revoked;
mod room;
mod runs;
mod same_name;
mod schedules;
mod secrets;
mod setup;
mod socket;
mod spaces;
mod tasks;
mod usage;
mod webhook;
