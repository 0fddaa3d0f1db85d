//! The backend for Linux: bubblewrap makes separate views of files, processes and network, the helper inside restricts
//! files and system calls again.

mod id_map;
mod network;
mod program;

use std::path::PathBuf;
use std::sync::OnceLock;

use self::network::SharedNetwork;
use self::program::{Bubblewrap, CommandLine, Inside};
use crate::attestation::Attestation;
use crate::backend::{Backend, InsideCommand, Variables};
use crate::boundary::{Boundary, Layers, Network};
use crate::environment::with_prefix;
use crate::error::SandboxError;
use crate::placeholders;
use crate::sandbox::{Guard, SandboxedCommand};
use crate::setup::Setup;
use crate::sys;

/// Sandboxes of bubblewrap.
#[derive(Debug)]
pub(crate) struct BubblewrapBackend {
    program: Bubblewrap,
    helper: PathBuf,
    setup: Setup,
    is_root: bool,
    landlock_abi: i32,
    /// Made for the first program; `None` in it if this machine does not allow that. Then each program has its own.
    network: OnceLock<Option<SharedNetwork>>,
}

impl BubblewrapBackend {
    /// # Errors
    /// When bubblewrap is missing or too old.
    pub(crate) fn find(setup: Setup, helper: PathBuf) -> Result<Self, SandboxError> {
        Ok(Self {
            program: Bubblewrap::find(setup.bubblewrap.as_deref())?,
            helper,
            is_root: rustix::process::geteuid().is_root(),
            landlock_abi: sys::landlock_version(),
            network: OnceLock::new(),
            setup,
        })
    }

    /// The layers that this kernel has, of those that a boundary requests.
    fn layers(&self, boundary: &Boundary) -> Layers {
        let landlock = boundary.layers.landlock && self.landlock_abi > 0;
        Layers { landlock, ..boundary.layers }
    }

    /// The network that the programs share, if they have none of the outside.
    fn network(&self, boundary: &Boundary) -> Option<&SharedNetwork> {
        if !boundary.layers.namespaces || boundary.network == Network::Host {
            return None;
        }
        let make = || SharedNetwork::new(&self.helper, self.is_root).ok();
        self.network.get_or_init(make).as_ref()
    }
}

impl Backend for BubblewrapBackend {
    fn attest(&self, boundary: &Boundary) -> Result<Attestation, SandboxError> {
        let layers = self.layers(boundary);
        let mut missing = Vec::new();
        if layers != boundary.layers {
            let reason = "the kernel has no rules about files (Landlock, Linux 5.13 or newer)";
            if !self.setup.accept_weaker {
                return Err(SandboxError::Unavailable(format!(
                    "the sandbox is not complete: {reason}. Set sandbox.enableWeakerNestedSandbox to accept that"
                )));
            }
            missing.push(reason.to_owned());
        }
        let user = if self.is_root { id_map::ID } else { rustix::process::geteuid().as_raw() };
        let backend = format!("bubblewrap {}", self.program.version);
        let mut attestation = Attestation::of_linux(boundary, backend, layers, user);
        attestation.landlock_abi = if layers.landlock { self.landlock_abi } else { 0 };
        attestation.missing = missing;
        Ok(attestation)
    }

    fn command(
        &self,
        boundary: &Boundary,
        inside: &InsideCommand<'_>,
    ) -> Result<SandboxedCommand, SandboxError> {
        let mut boundary = Boundary { layers: self.layers(boundary), ..boundary.clone() };
        let network = if inside.is_trial { None } else { self.network(&boundary) };
        if !boundary.layers.namespaces {
            // The other layers know no exceptions inside a writable folder.
            boundary.protected.clear();
        }
        let masks = placeholders::make(&mut boundary, &self.helper)?;
        let CommandLine { program, arguments } = self.program.command(
            &boundary,
            &Inside {
                helper: &self.helper,
                folder: inside.folder,
                program: inside.program,
                arguments: inside.arguments,
                user_namespaces: self.setup.user_namespaces,
                is_root: self.is_root,
                network,
            },
        )?;
        Ok(SandboxedCommand { program, arguments, guard: Guard::new(vec![Box::new(masks)]) })
    }

    fn variables(&self, _: &Boundary, inside: Variables) -> Variables {
        inside.into_iter().map(with_prefix).collect()
    }
}
