//! What builds sandboxes on a machine: one trait. `sandbox.rs` chooses an implementation and uses it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use crate::attestation::Attestation;
use crate::boundary::Boundary;
use crate::command::SandboxedCommand;
use crate::error::SandboxError;
use crate::reached::FirstReached;

/// The variables of a program.
pub(crate) type Variables = BTreeMap<OsString, OsString>;

/// Builds sandboxes. A value of it exists only if its program was found; whether that works here is shown by a trial.
pub(crate) trait Backend: Debug + Send + Sync {
    /// What it really enforces of a boundary.
    ///
    /// # Errors
    /// When it cannot enforce a part of the boundary, unless the caller accepted that. The error names the part.
    fn attest(&self, boundary: &Boundary) -> Result<Attestation, SandboxError>;

    /// The command line that runs a program inside a boundary, for which [`Self::attest`] has succeeded.
    ///
    /// # Errors
    /// When the boundary cannot be built now: a protected path is a link, for example. Then the program must not run.
    fn command(
        &self,
        boundary: &Boundary,
        inside: &InsideCommand<'_>,
    ) -> Result<SandboxedCommand, SandboxError>;

    /// The variables with which the command line is started, so that the program inside gets these and what builds the
    /// sandbox is not affected by them.
    fn variables(&self, boundary: &Boundary, inside: Variables) -> Variables;

    /// The programs that build a sandbox from outside. Commands must not replace them, where they could write.
    fn programs(&self) -> Vec<PathBuf>;
}

/// A program to run inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InsideCommand<'a> {
    /// Its absolute path, or a name to look up inside.
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [OsString],
    /// The working directory as the program sees it.
    pub(crate) folder: &'a Path,
    /// Whether it only shows that a sandbox works. Then nothing is made that several programs share.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is shared there"))]
    pub(crate) is_trial: bool,
    /// Where the limit that the program reaches is recorded.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is recorded there"))]
    pub(crate) reached: &'a FirstReached,
}
