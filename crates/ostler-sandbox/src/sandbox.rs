//! A sandbox: a boundary, and what enforces it on this machine.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::attestation::Attestation;
use crate::backend::{Backend, InsideCommand, Variables};
use crate::boundary::{Boundary, Kind, Protected};
use crate::choice;
use crate::command::SandboxedCommand;
use crate::diagnosis;
use crate::error::{COMPLAINT, SandboxError};
use crate::reached::FirstReached;
use crate::setup::Setup;

/// A boundary that this machine can enforce. With bubblewrap, programs in it share a network with loopback addresses, which
/// nothing else can reach.
#[derive(Clone, Debug)]
pub struct Sandbox {
    boundary: Boundary,
    backend: Arc<dyn Backend>,
    attestation: Attestation,
    /// The limit that a program with this boundary has reached.
    reached: FirstReached,
}

impl Sandbox {
    /// Finds out what enforces the boundary here, and tries it.
    ///
    /// # Errors
    /// When a part is missing or does not work on this machine.
    pub fn new(mut boundary: Boundary, setup: Setup) -> Result<Self, SandboxError> {
        let backend = choice::backend(setup)?;
        protect_programs(&mut boundary, &*backend);
        let attestation = backend.attest(&boundary)?;
        let sandbox = Self::of(boundary, backend, attestation);
        sandbox.attempt()?;
        Ok(sandbox)
    }

    /// The boundary.
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// What is enforced.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// The same sandbox with another boundary. What enforces it is not tried again, and the network is the same.
    ///
    /// # Errors
    /// When it cannot enforce this boundary.
    pub fn with(&self, boundary: Boundary) -> Result<Self, SandboxError> {
        let mut boundary = Boundary { layers: self.boundary.layers, ..boundary };
        protect_programs(&mut boundary, &*self.backend);
        let attestation = self.backend.attest(&boundary)?;
        Ok(Self::of(boundary, Arc::clone(&self.backend), attestation))
    }

    fn of(boundary: Boundary, backend: Arc<dyn Backend>, attestation: Attestation) -> Self {
        Self { boundary, backend, attestation, reached: FirstReached::default() }
    }

    /// Why a command that failed inside may have failed because of the sandbox, in one line. If it has reached a limit, that is
    /// certain; use one value ([`Self::with`]) for each command to know which.
    pub fn reason_of_failure(&self, output: &str, code: Option<i32>) -> Option<String> {
        self.reached_limit().or_else(|| diagnosis::reason(&self.boundary, output, code))
    }

    /// The limit for which a program with this boundary was ended or refused something, in one sentence.
    pub fn reached_limit(&self) -> Option<String> {
        self.reached.limit().map(|limit| diagnosis::reached(&limit))
    }

    /// The command line that runs a program inside. `program` is an absolute path, or a name to look up inside. `folder`
    /// is the working directory as the program sees it.
    ///
    /// # Errors
    /// When the boundary cannot be built: a protected path is a link, for example. Then the program must not run.
    pub fn command(
        &self,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        folder: &Path,
    ) -> Result<SandboxedCommand, SandboxError> {
        let arguments: Vec<OsString> = arguments.iter().map(|it| it.as_ref().to_owned()).collect();
        self.backend.command(&self.boundary, &self.inside(program, &arguments, folder, false))
    }

    fn inside<'a>(
        &'a self,
        program: &'a Path,
        arguments: &'a [OsString],
        folder: &'a Path,
        is_trial: bool,
    ) -> InsideCommand<'a> {
        InsideCommand { program, arguments, folder, is_trial, reached: &self.reached }
    }

    pub(crate) fn variables(&self, inside: Variables) -> Variables {
        self.backend.variables(&self.boundary, inside)
    }

    /// Runs a program that does nothing.
    fn attempt(&self) -> Result<(), SandboxError> {
        let program = Path::new(choice::TRIAL);
        let inside = self.inside(program, &[], Path::new("/"), true);
        let command = self.backend.command(&self.boundary, &inside)?;
        let output = Command::new(&command.program)
            .args(&command.arguments)
            .env_clear()
            .envs(self.variables(Variables::new()))
            .stdin(Stdio::null())
            .output()
            .map_err(SandboxError::io(&command.program))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let reason = text.trim().trim_start_matches(COMPLAINT);
        Err(SandboxError::Unavailable(format!(
            "the sandbox does not work on this machine: {reason} ({})",
            output.status
        )))
    }
}

/// Protects the programs that start the next command outside, if they are where commands can write: those of a project, for
/// example.
fn protect_programs(boundary: &mut Boundary, backend: &dyn Backend) {
    for path in backend.programs() {
        let is_writable = boundary.writable_roots().any(|root| path.starts_with(root));
        let program = Protected { path, kind: Kind::File };
        if is_writable && program.path.exists() && !boundary.protected.contains(&program) {
            boundary.protected.push(program);
        }
    }
}
