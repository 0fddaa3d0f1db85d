//! The server as clients know it: over HTTP, against a scripted model.

mod approvals;
mod desk;
mod runs;
mod socket;
mod tasks;
