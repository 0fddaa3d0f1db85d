//! What was really enforced for a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::boundary::{Boundary, Layers, Limits, Network, UnixSockets};

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
    /// What enforces each of these limits: `cgroup` (for all processes of a command together), `rlimit` (for each process) or
    /// `tmpfs` (for each folder in memory).
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
}

/// The requested limits, each with what enforces it on Linux without control groups.
pub(crate) fn rlimits(limits: &Limits) -> BTreeMap<&'static str, &'static str> {
    let Limits { processes, memory, file_size, open_files, cpu_seconds, temporary } = limits;
    let all = [
        ("processes", processes, "rlimit"),
        ("memory", memory, "rlimit"),
        ("fileSize", file_size, "rlimit"),
        ("openFiles", open_files, "rlimit"),
        ("cpuSeconds", cpu_seconds, "rlimit"),
        ("temporary", temporary, "tmpfs"),
    ];
    all.into_iter().filter(|(_, most, _)| most.is_some()).map(|(name, _, by)| (name, by)).collect()
}
