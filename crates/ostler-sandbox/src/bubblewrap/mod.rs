//! The backend for Linux: bubblewrap makes separate views of files, processes and network, the helper inside restricts
//! files and system calls again.

mod id_map;
mod namespace;
mod network;
mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self::network::SharedNetwork;
use self::program::{Bubblewrap, CommandLine, Inside};
use crate::attestation::{Attestation, rlimits};
use crate::backend::{Backend, InsideCommand, Variables};
use crate::boundary::{Boundary, Layers, Network};
use crate::command::{Guard, SandboxedCommand};
use crate::control_group::{ControlGroups, Controllers, LimitedGroup, SessionGroup};
use crate::diagnosis;
use crate::environment::with_prefix;
use crate::error::SandboxError;
use crate::helper;
use crate::placeholders;
use crate::reached::FirstReached;
use crate::setup::Setup;
use crate::supervisor::{SessionUse, ToWatch, Watch};
use crate::sys;

/// Sandboxes of bubblewrap.
#[derive(Debug)]
pub(crate) struct BubblewrapBackend {
    program: Bubblewrap,
    helper: PathBuf,
    setup: Setup,
    is_root: bool,
    landlock_abi: i32,
    /// Where limits of all processes of a command together can be set.
    groups: Option<&'static ControlGroups>,
    /// The group around those of the commands; made for the first one.
    session_group: Mutex<Option<Arc<SessionGroup>>>,
    /// What the commands use together.
    usage: Arc<SessionUse>,
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
            groups: ControlGroups::of_this_process(),
            session_group: Mutex::default(),
            usage: Arc::default(),
            network: OnceLock::new(),
            setup,
        })
    }

    /// The layers that this kernel has, of those that a boundary requests.
    fn layers(&self, boundary: &Boundary) -> Layers {
        let landlock = boundary.layers.landlock && self.landlock_abi > 0;
        Layers { landlock, ..boundary.layers }
    }

    /// The control groups, if those of a boundary are used. Without namespaces no helper enters them.
    fn groups(&self, boundary: &Boundary) -> Option<&'static ControlGroups> {
        self.groups.filter(|_| boundary.layers.namespaces)
    }

    /// The group of a command, if its limits need one.
    fn group(
        &self,
        boundary: &Boundary,
        reached: &FirstReached,
    ) -> Result<Option<LimitedGroup>, SandboxError> {
        let limits = &boundary.limits;
        let Some(groups) = self.groups(boundary).filter(|groups| groups.are_needed(limits)) else {
            return Ok(None);
        };
        let mut session = self.session_group.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match &mut *session {
            Some(session) => session,
            none => none.insert(Arc::new(groups.session(&limits.session, &self.helper)?)),
        };
        session.command(limits, reached.clone()).map(Some)
    }

    /// Watches a command for the limits that nothing else enforces.
    fn watch(
        &self,
        boundary: &Boundary,
        inside: &InsideCommand<'_>,
        group: Option<&LimitedGroup>,
    ) -> Result<Option<Watch>, SandboxError> {
        if inside.is_trial || !boundary.layers.namespaces {
            return Ok(None);
        }
        if let Some(limit) = self.usage.used_up(&boundary.limits) {
            return Err(SandboxError::Unavailable(diagnosis::reached(&limit)));
        }
        let mut limits = boundary.limits.clone();
        let Controllers { processes, memory } = self.controllers(boundary);
        limits.memory = limits.memory.filter(|_| !memory);
        limits.session.memory = limits.session.memory.filter(|_| !memory);
        limits.session.processes = limits.session.processes.filter(|_| !processes);
        let mapped = boundary.mapped.iter().map(|it| it.source.clone());
        let roots = boundary.writable_roots().cloned().chain(mapped).collect();
        let group = group.map(|group| group.path().to_owned());
        let to_watch = ToWatch { limits, reached: inside.reached.clone(), roots, group };
        Watch::new(&self.usage, to_watch).map_err(SandboxError::io(&self.helper))
    }

    fn controllers(&self, boundary: &Boundary) -> Controllers {
        self.groups(boundary).map(|groups| groups.controllers).unwrap_or_default()
    }

    /// What enforces each limit.
    fn limits_by(&self, boundary: &Boundary) -> BTreeMap<&'static str, &'static str> {
        let mut all = rlimits(&boundary.limits);
        if !boundary.layers.namespaces {
            return all;
        }
        let Controllers { processes, memory } = self.controllers(boundary);
        for (name, most) in boundary.limits.named() {
            let by = match name {
                "processes" | "session.processes" if processes => "cgroup",
                "memory" | "session.memory" if memory => "cgroup",
                // The system counts the processes of each user namespace, and each command has its own.
                "processes" | "fileSize" | "openFiles" | "temporary" => continue,
                _ => "supervisor",
            };
            if most.is_some() {
                all.insert(name, by);
            }
        }
        all
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
        attestation.limits_by = self.limits_by(boundary);
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
        let group = self.group(&boundary, inside.reached)?;
        let watch = self.watch(&boundary, inside, group.as_ref())?;
        if group.is_some() {
            // Programs that reserve much memory and use little would meet the other limit.
            let Controllers { processes, memory } = self.controllers(&boundary);
            boundary.limits.processes = boundary.limits.processes.filter(|_| !processes);
            boundary.limits.memory = boundary.limits.memory.filter(|_| !memory);
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
                group: group.as_ref().map(LimitedGroup::path),
            },
        )?;
        // In this order: what runs may still use the placeholders.
        let guard = Guard::new(watch, vec![Box::new(group), Box::new(masks)]);
        Ok(SandboxedCommand { program, arguments, guard })
    }

    fn programs(&self) -> Vec<PathBuf> {
        let helpers = helper::programs().into_iter().map(Path::to_owned);
        helpers.chain([self.program.path().to_owned()]).collect()
    }

    fn variables(&self, _: &Boundary, inside: Variables) -> Variables {
        inside.into_iter().map(with_prefix).collect()
    }
}
