//! A sandbox: a boundary, and what enforces it on this machine.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use crate::attestation::Attestation;
use crate::boundary::{Boundary, Network};
use crate::bubblewrap::{Bubblewrap, CommandLine, Inside};
use crate::diagnosis;
use crate::error::SandboxError;
use crate::helper;
use crate::id_map;
use crate::mask::{self, Masks};
use crate::network::SharedNetwork;
use crate::setup::Setup;
use crate::spec::COMPLAINT;
use crate::sys;

/// A boundary that this machine can enforce. Programs in it share a network with loopback addresses, which nothing else can
/// reach.
#[derive(Clone, Debug)]
pub struct Sandbox {
    boundary: Boundary,
    bubblewrap: Bubblewrap,
    helper: PathBuf,
    setup: Setup,
    is_root: bool,
    attestation: Attestation,
    /// Made for the first program; `None` in it if this machine does not allow that. Then each program has its own.
    network: Arc<OnceLock<Option<SharedNetwork>>>,
}

/// A command line that runs a program in a sandbox. Keep it until the program has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct SandboxedCommand {
    /// The program to start, by its absolute path.
    pub program: PathBuf,
    /// Its arguments. They do not contain the environment, which other users could read there.
    pub arguments: Vec<OsString>,
    /// What must exist while the program runs.
    pub guard: Guard,
}

/// Files that must exist while a program runs in a sandbox.
#[derive(Debug, Default)]
pub struct Guard {
    _masks: Vec<Masks>,
}

impl Sandbox {
    /// Finds out what enforces the boundary here, and tries it.
    ///
    /// # Errors
    /// When a part is missing or does not work on this machine.
    pub fn new(mut boundary: Boundary, setup: Setup) -> Result<Self, SandboxError> {
        let helper = helper::program().ok_or_else(|| {
            SandboxError::Unavailable(
                "this program cannot start a sandbox: call ostler::engine::sandbox::run_if_called() first in its main \
                 function, or name another program that does with ostler::engine::sandbox::use_helper()"
                    .to_owned(),
            )
        })?;
        let bubblewrap = Bubblewrap::find(setup.bubblewrap.as_deref())?;
        let landlock_abi = sys::landlock_version();
        let mut missing = Vec::new();
        if boundary.layers.landlock && landlock_abi == 0 {
            let reason = "the kernel has no rules about files (Landlock, Linux 5.13 or newer)";
            if !setup.accept_weaker {
                return Err(SandboxError::Unavailable(format!(
                    "the sandbox is not complete: {reason}. Set sandbox.enableWeakerNestedSandbox to accept that"
                )));
            }
            boundary.layers.landlock = false;
            missing.push(reason.to_owned());
        }
        let is_root = rustix::process::geteuid().is_root();
        let user = if is_root { id_map::ID } else { rustix::process::geteuid().as_raw() };
        let backend = format!("bubblewrap {}", bubblewrap.version);
        let mut attestation = Attestation::new(&boundary, backend, landlock_abi, user);
        attestation.missing = missing;
        let helper = helper.to_owned();
        let network = Arc::default();
        let sandbox = Self { boundary, bubblewrap, helper, setup, is_root, attestation, network };
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
    #[must_use]
    pub fn with(&self, boundary: Boundary) -> Self {
        let mut attestation = Attestation::new(
            &Boundary { layers: self.boundary.layers, ..boundary.clone() },
            self.attestation.backend.clone(),
            self.attestation.landlock_abi,
            self.attestation.user,
        );
        attestation.missing.clone_from(&self.attestation.missing);
        let boundary = Boundary { layers: self.boundary.layers, ..boundary };
        Self { boundary, attestation, ..self.clone() }
    }

    /// Why a command that failed inside may have failed because of the sandbox, in one line.
    pub fn reason_of_failure(&self, output: &str, code: Option<i32>) -> Option<String> {
        diagnosis::reason(&self.boundary, output, code)
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
        self.command_in(self.network(), program, arguments, folder)
    }

    fn command_in(
        &self,
        network: Option<&SharedNetwork>,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
        folder: &Path,
    ) -> Result<SandboxedCommand, SandboxError> {
        let mut boundary = self.boundary.clone();
        let mut missing: BTreeMap<PathBuf, Vec<_>> = BTreeMap::new();
        if !boundary.layers.namespaces {
            // The other layers know no exceptions inside a writable folder.
            boundary.protected.clear();
        }
        for protected in &mut boundary.protected {
            let (path, kind) = mask::place(protected);
            if is_writable(&self.boundary, &path)
                && mask::is_needed(&path)
                && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            {
                let names = missing.entry(folder.to_owned()).or_default();
                names.push((name.to_owned(), kind));
            }
            protected.path = path;
        }
        let masks = missing.iter().map(|(folder, names)| Masks::new(folder, names, &self.helper));
        let masks = masks.collect::<Result<_, _>>()?;
        let arguments: Vec<OsString> = arguments.iter().map(|it| it.as_ref().to_owned()).collect();
        let CommandLine { program, arguments } = self.bubblewrap.command(
            &boundary,
            &Inside {
                helper: &self.helper,
                folder,
                program,
                arguments: &arguments,
                user_namespaces: self.setup.user_namespaces,
                is_root: self.is_root,
                network,
            },
        )?;
        Ok(SandboxedCommand { program, arguments, guard: Guard { _masks: masks } })
    }

    /// The network that the programs share, if they have none of the outside.
    fn network(&self) -> Option<&SharedNetwork> {
        if !self.boundary.layers.namespaces || self.boundary.network == Network::Host {
            return None;
        }
        let make = || SharedNetwork::new(&self.helper, self.is_root).ok();
        self.network.get_or_init(make).as_ref()
    }

    /// Runs a program that does nothing.
    fn attempt(&self) -> Result<(), SandboxError> {
        let (program, folder) = (Path::new("/bin/true"), Path::new("/"));
        let command = self.command_in(None, program, &[] as &[&str], folder)?;
        let output = Command::new(&command.program)
            .args(&command.arguments)
            .env_clear()
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

fn is_writable(boundary: &Boundary, path: &Path) -> bool {
    boundary.writable_roots().any(|root| path.starts_with(root))
}
