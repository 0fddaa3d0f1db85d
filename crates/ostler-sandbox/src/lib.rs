//! Runs programs inside a boundary that the operating system enforces: what they can read and write, which hosts they can
//! reach, how much they may use. The boundary holds for everything that such a program starts.
//!
//! On Linux three layers enforce it together ([`Layers`]): bubblewrap gives the program its own view of files, processes
//! and network; then a helper inside, which is this program started again, adds the kernel's rules about files (Landlock)
//! and a filter of system calls (seccomp), and becomes the program. A caller that is root does not stay root: the
//! sandbox runs as a user without rights who sees the writable folders as his own (`helper/outer.rs`).
//!
//! ```no_run
//! use std::path::Path;
//!
//! fn main() {
//!     // First: the sandbox starts this program again.
//!     if ostler_sandbox::run_if_called().is_some() {
//!         return;
//!     }
//!     let mut boundary = ostler_sandbox::Boundary::default();
//!     boundary.writable = vec!["/srv/project".into()];
//!     boundary.hidden = vec!["/home".into(), "/root".into()];
//!     let sandbox = ostler_sandbox::Sandbox::new(boundary, Default::default()).unwrap();
//!     let make = sandbox.command(Path::new("make"), &["test"], Path::new("/srv/project")).unwrap();
//!     let mut child = std::process::Command::new(&make.program).args(&make.arguments).spawn().unwrap();
//!     make.guard.started(child.id());
//!     let status = child.wait();
//!     drop(make.guard);
//!     println!("{status:?} within {:?}", sandbox.attestation());
//! }
//! ```
#![warn(missing_docs)]

mod attestation;
mod backend;
mod boundary;
#[cfg(target_os = "linux")]
mod bubblewrap;
mod choice;
mod command;
mod confine;
#[cfg(target_os = "linux")]
mod container;
#[cfg(target_os = "linux")]
mod control_group;
mod diagnosis;
#[cfg(target_os = "linux")]
mod environment;
mod error;
mod helper;
mod limits;
#[cfg(target_os = "linux")]
mod mark;
#[cfg(target_os = "linux")]
mod mask;
#[cfg(target_os = "linux")]
mod owner;
#[cfg(target_os = "linux")]
mod placeholders;
#[cfg(target_os = "linux")]
mod plan;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only backends of Linux record limits")
)]
mod reached;
#[cfg(target_os = "linux")]
mod renounce;
#[cfg(not(target_os = "linux"))]
#[path = "no_renounce.rs"]
mod renounce;
mod sandbox;
mod seatbelt;
mod setup;
#[cfg(target_os = "linux")]
mod spec;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
pub mod usual;

pub use self::attestation::Attestation;
pub use self::boundary::{
    Boundary, EnvironmentChanges, Kind, Layers, Mapped, Network, Protected, UnixSockets,
};
pub use self::command::{Guard, SandboxedCommand};
pub use self::error::SandboxError;
pub use self::helper::{run_if_called, use_helper};
pub use self::limits::{Limits, SessionLimits};
pub use self::renounce::renounce;
pub use self::sandbox::Sandbox;
pub use self::setup::{BackendChoice, Setup};
