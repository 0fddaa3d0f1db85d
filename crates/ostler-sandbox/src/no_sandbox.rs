//! Systems without a sandbox: everything that asks for one is refused.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use ostler_process::{Confine, ConfinedProgram, InsideProgram};

use crate::attestation::Attestation;
use crate::boundary::Boundary;
use crate::error::SandboxError;
use crate::setup::Setup;

/// A boundary that this machine can enforce. There is none on this system.
#[derive(Clone, Debug)]
pub struct Sandbox(Infallible);

/// A command line that runs a program in a sandbox.
#[derive(Debug)]
#[non_exhaustive]
pub struct SandboxedCommand {
    /// The program to start, by its absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What must exist while the program runs.
    pub guard: Guard,
}

/// Files that must exist while a program runs in a sandbox.
#[derive(Debug, Default)]
pub struct Guard(());

/// Does nothing: this system cannot restrict a process in this way.
///
/// # Errors
/// Never.
pub fn renounce() -> Result<(), String> {
    Ok(())
}

impl Sandbox {
    /// # Errors
    /// Always: this system has no sandbox.
    pub fn new(_: Boundary, _: Setup) -> Result<Self, SandboxError> {
        Err(SandboxError::Unavailable(
            "this system has no sandbox; it needs Linux with bubblewrap".to_owned(),
        ))
    }

    /// The boundary.
    pub fn boundary(&self) -> &Boundary {
        match self.0 {}
    }

    /// What is enforced.
    pub fn attestation(&self) -> &Attestation {
        match self.0 {}
    }

    /// The same sandbox with another boundary.
    #[must_use]
    pub fn with(&self, _: Boundary) -> Self {
        match self.0 {}
    }

    /// Why a command that failed inside may have failed because of the sandbox, in one line.
    pub fn reason_of_failure(&self, _: &str, _: Option<i32>) -> Option<String> {
        match self.0 {}
    }

    /// The command line that runs a program inside.
    ///
    /// # Errors
    /// Never, because there is no sandbox.
    pub fn command(
        &self,
        _: &Path,
        _: &[impl AsRef<OsStr>],
        _: &Path,
    ) -> Result<SandboxedCommand, SandboxError> {
        match self.0 {}
    }
}

impl Confine for Sandbox {
    fn confine(&self, _: InsideProgram<'_>) -> io::Result<ConfinedProgram> {
        match self.0 {}
    }
}
