//! What was really enforced for a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::boundary::{Boundary, Layers, Network, UnixSockets};
use crate::error::SandboxError;
use crate::limits::Limits;

/// What a sandbox enforces, for people and programs that must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Attestation {
    /// The program that builds the sandbox, with its version: `bubblewrap 0.8.0`.
    pub backend: String,
    /// What is enforced: `fs` (files), `net` (network), `syscalls` (system calls). The names of `sandbox.required`.
    pub protections: Vec<&'static str>,
    /// What enforces the boundary on Linux.
    pub layers: Layers,
    /// The version of the kernel's rules about files; 0 if they are not used.
    pub landlock_abi: i32,
    /// The user id that programs run as, as the system outside the sandbox sees it.
    pub user: u32,
    /// Paths that can be written.
    pub writable: Vec<PathBuf>,
    /// Paths in them that cannot.
    pub protected: Vec<PathBuf>,
    /// Paths that look empty.
    pub hidden: Vec<PathBuf>,
    /// `none`, `allow-list`, `own-proxy` or `host`.
    pub network: &'static str,
    /// `none`, `listed` or `all`.
    pub unix_sockets: &'static str,
    /// How much programs may use.
    pub limits: Limits,
    /// What enforces each of these limits, by the names of their settings (`memory`, `session.memory`): `cgroup` (the system,
    /// for all processes together), `supervisor` (this program looks several times a second, and ends the command), `rlimit`
    /// (the system, for each process) or `tmpfs` (the system, for each folder in memory).
    pub limits_by: BTreeMap<&'static str, &'static str>,
    /// What was requested and is not possible here.
    pub missing: Vec<String>,
}

impl Attestation {
    /// That of a backend with namespaces and the helper inside.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_linux(
        boundary: &Boundary,
        backend: String,
        layers: Layers,
        user: u32,
    ) -> Self {
        let protections = [
            (layers.namespaces || layers.landlock, "fs"),
            (layers.namespaces && boundary.network != Network::Host, "net"),
            (layers.seccomp, "syscalls"),
        ];
        let protections = protections.into_iter().filter(|(is_given, _)| *is_given);
        let protections = protections.map(|(_, name)| name).collect();
        Self { layers, ..Self::new(boundary, backend, protections, user) }
    }

    /// What a boundary requests, enforced with these protections.
    pub(crate) fn new(
        boundary: &Boundary,
        backend: String,
        protections: Vec<&'static str>,
        user: u32,
    ) -> Self {
        Self {
            backend,
            protections,
            layers: Layers::NONE,
            landlock_abi: 0,
            user,
            writable: boundary.writable_roots().cloned().collect(),
            protected: boundary.protected.iter().map(|it| it.path.clone()).collect(),
            hidden: boundary.hidden.clone(),
            network: match boundary.network {
                Network::None => "none",
                Network::Proxy(_) => "allow-list",
                Network::UserProxy(_) => "own-proxy",
                Network::Host => "host",
            },
            unix_sockets: match boundary.unix_sockets {
                UnixSockets::None => "none",
                UnixSockets::These(_) => "listed",
                UnixSockets::All => "all",
            },
            limits: boundary.limits.clone(),
            limits_by: BTreeMap::new(),
            missing: Vec::new(),
        }
    }

    /// Whether a protection is enforced: `fs` (files), `net` (network) or `syscalls` (system calls). `None` for another name.
    pub fn has(&self, protection: &str) -> Option<bool> {
        const KNOWN: [&str; 3] = ["fs", "net", "syscalls"];
        KNOWN.contains(&protection).then(|| self.protections.contains(&protection))
    }

    /// Whether all of these protections are enforced.
    ///
    /// # Errors
    /// Which one is not, or is not the name of a protection.
    pub fn require(&self, protections: &[String]) -> Result<(), String> {
        for protection in protections {
            match self.has(protection) {
                Some(true) => {}
                Some(false) => {
                    return Err(format!("{protection} is required and is not enforced here"));
                }
                None => {
                    return Err(format!(
                        "sandbox.required: {protection:?} is not a protection; use fs, net or syscalls"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The requested limits of commands, each with what enforces it on Linux without control groups. Those that hold for several
/// processes together need a supervisor, and are not among them.
pub(crate) fn rlimits(limits: &Limits) -> BTreeMap<&'static str, &'static str> {
    let by = |name| match name {
        "temporary" => Some("tmpfs"),
        "processes" | "memory" | "fileSize" | "openFiles" | "cpuSeconds" => Some("rlimit"),
        _ => None,
    };
    let requested = limits.named().into_iter().filter(|(_, most)| most.is_some());
    requested.filter_map(|(name, _)| Some((name, by(name)?))).collect()
}

/// Limits that a backend does not enforce, as texts for [`Attestation::missing`].
///
/// # Errors
/// When one of them was requested with another value than the usual one: it would have no effect.
pub(crate) fn without(
    limits: &Limits,
    names: &[&str],
    reason: &str,
) -> Result<Vec<String>, SandboxError> {
    let usual = Limits::default().named();
    let mut missing = Vec::new();
    for ((name, most), (_, usual)) in limits.named().into_iter().zip(usual) {
        if most.is_none() || !names.contains(&name) {
            continue;
        }
        if most != usual {
            return Err(SandboxError::Unavailable(format!(
                "sandbox.limits.{name} cannot be enforced: {reason}. Remove it from the settings"
            )));
        }
        missing.push(format!("sandbox.limits.{name}: {reason}"));
    }
    Ok(missing)
}
