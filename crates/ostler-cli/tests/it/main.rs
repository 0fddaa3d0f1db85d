//! The `ostler` program as a process: what a newcomer types, and what they see.

mod demo;
mod model;
mod run;
