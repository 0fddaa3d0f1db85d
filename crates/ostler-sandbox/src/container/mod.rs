//! The backend for containers: podman or docker makes the separate views, of an image instead of this machine's files, and the
//! helper inside restricts files and system calls again, as with bubblewrap.
//!
//! What it does not do: programs do not share loopback addresses with each other, and a link that another process puts in the
//! place of a protected path at the moment of the start is followed by the container program.

mod arguments;
mod program;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use self::arguments::Container;
use self::program::ContainerProgram;
pub(crate) use self::program::{Engine, sweep as sweep_containers};
use crate::attestation::{Attestation, rlimits, without};
use crate::backend::{Backend, InsideCommand, Variables};
use crate::boundary::{Boundary, Layers, Network};
use crate::command::{Guard, SandboxedCommand};
use crate::environment;
use crate::error::SandboxError;
use crate::placeholders;
use crate::plan;
use crate::setup::Setup;
use crate::sys;

/// Precedes what the sweeper needs to find the containers of a process.
pub(crate) const TO_SWEEP: &str = "container:";

/// The user of a container that root starts without a writable folder. No system gives this number to a user.
const NO_USER: (u32, u32) = (65_533, 65_533);

/// Variables of this process that the container program needs.
const NEEDED: [&str; 6] = [
    "HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
];
/// Where it finds its own tools.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Limits that containers do not have.
const NO_LIMITS: [&str; 7] = [
    "disk",
    "files",
    "session.processes",
    "session.memory",
    "session.cpuSeconds",
    "session.disk",
    "session.files",
];

/// Sandboxes in containers.
#[derive(Debug)]
pub(crate) struct ContainerBackend {
    program: ContainerProgram,
    image: String,
    helper: PathBuf,
    setup: Setup,
    is_root: bool,
    landlock_abi: i32,
}

impl ContainerBackend {
    /// # Errors
    /// When the program is missing, or no image is named.
    pub(crate) fn find(
        engine: Engine,
        setup: Setup,
        helper: PathBuf,
    ) -> Result<Self, SandboxError> {
        let image = setup.container_image.clone();
        let image = image.filter(|it| !it.starts_with('-') && !it.contains(char::is_whitespace));
        let image = image.ok_or_else(|| {
            refused(
                "sandbox.containerImage does not name an image, and a container shows the files of one",
                "Name one that is on this machine and has the tools of the project, such as \"debian:bookworm\"",
            )
        })?;
        let program = ContainerProgram::find(engine)?;
        program.remove_leftovers();
        let is_root = rustix::process::geteuid().is_root();
        let landlock_abi = sys::landlock_version();
        Ok(Self { program, image, helper, setup, is_root, landlock_abi })
    }

    /// The user inside: this one, or the owner of the first writable folder if this one is root.
    fn user(&self, boundary: &Boundary) -> Result<(u32, u32), SandboxError> {
        if !self.is_root {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            return Ok((user.as_raw(), group.as_raw()));
        }
        let Some(root) = boundary.writable_roots().next() else { return Ok(NO_USER) };
        let about = fs::metadata(root).map_err(SandboxError::io(root))?;
        match about.uid() {
            0 => Err(refused(
                &format!("{} belongs to root, and nothing runs as root inside", root.display()),
                "Start this program as the owner of its folder, give the folder to another user, or set sandbox.backend to \
                 \"bubblewrap\"",
            )),
            user => Ok((user, about.gid())),
        }
    }

    fn layers(&self, boundary: &Boundary) -> Layers {
        Layers { landlock: boundary.layers.landlock && self.landlock_abi > 0, ..boundary.layers }
    }
}

fn refused(reason: &str, way_out: &str) -> SandboxError {
    SandboxError::Unavailable(format!(
        "the sandbox in a container cannot be used: {reason}. {way_out}"
    ))
}

impl Backend for ContainerBackend {
    fn programs(&self) -> Vec<PathBuf> {
        vec![self.helper.clone(), self.program.path.clone()]
    }

    fn attest(&self, boundary: &Boundary) -> Result<Attestation, SandboxError> {
        if boundary.network == Network::Host {
            return Err(refused(
                "the whole network of this machine is requested",
                "Name hosts in sandbox.network.allowedDomains, or set sandbox.backend to \"bubblewrap\"",
            ));
        }
        if self.setup.user_namespaces {
            return Err(refused(
                "sandbox.allowNestedUserNamespaces cannot be enforced in one",
                "Remove it, or set sandbox.backend to \"bubblewrap\"",
            ));
        }
        if !boundary.layers.namespaces {
            return Err(refused("a container always has namespaces", "Request them"));
        }
        let layers = self.layers(boundary);
        let mut missing = Vec::new();
        if layers != boundary.layers {
            let reason = "the kernel has no rules about files (Landlock, Linux 5.13 or newer)";
            if !self.setup.accept_weaker {
                return Err(refused(
                    reason,
                    "Set sandbox.enableWeakerNestedSandbox to accept that",
                ));
            }
            missing.push(reason.to_owned());
        }
        let (user, _) = self.user(boundary)?;
        let backend = format!("{} {}", self.program.engine.name(), self.program.version);
        let mut attestation = Attestation::of_linux(boundary, backend, layers, user);
        attestation.landlock_abi = if layers.landlock { self.landlock_abi } else { 0 };
        attestation.limits_by = rlimits(&boundary.limits);
        for name in ["processes", "memory"] {
            attestation.limits_by.entry(name).and_modify(|by| *by = "cgroup");
        }
        missing.extend(without(
            &boundary.limits,
            &NO_LIMITS,
            "containers are limited one by one, and not in what they write on disk",
        )?);
        attestation.missing = missing;
        Ok(attestation)
    }

    fn command(
        &self,
        boundary: &Boundary,
        inside: &InsideCommand<'_>,
    ) -> Result<SandboxedCommand, SandboxError> {
        let mut boundary = Boundary { layers: self.layers(boundary), ..boundary.clone() };
        let user = self.user(&boundary)?;
        if self.is_root {
            hand_over(&boundary, user)?;
        }
        let masks = placeholders::make(&mut boundary, &self.helper)?;
        let views = plan::views(&boundary)?;
        let container = self.program.container(&self.helper)?;
        let arguments = arguments::of(&Container {
            engine: self.program.engine,
            image: &self.image,
            helper: &self.helper,
            name: container.name(),
            user,
            is_root: self.is_root,
            boundary: &boundary,
            views: &views,
            inside,
        })?;
        let program = self.program.path.clone();
        // In this order: what runs may still use the placeholders.
        let guard = Guard::new(None, vec![Box::new(container), Box::new(masks)]);
        Ok(SandboxedCommand { program, arguments, guard })
    }

    fn variables(&self, _: &Boundary, inside: Variables) -> Variables {
        let of_this_process = |name: &str| Some((name.into(), std::env::var_os(name)?));
        let mut all: Variables = NEEDED.into_iter().filter_map(of_this_process).collect();
        all.insert("PATH".into(), SEARCH_PATH.into());
        all.extend([environment::packed(&inside)]);
        all
    }
}

/// Gives the private folders and the proxy's socket to the user inside, who is not root as this process is.
fn hand_over(boundary: &Boundary, (user, group): (u32, u32)) -> Result<(), SandboxError> {
    let folders = boundary.mapped.iter().map(|mapped| &mapped.source);
    for path in folders.chain(boundary.network.socket()) {
        give(path, user, group)?;
    }
    Ok(())
}

fn give(path: &Path, user: u32, group: u32) -> Result<(), SandboxError> {
    std::os::unix::fs::lchown(path, Some(user), Some(group)).map_err(SandboxError::io(path))
}
