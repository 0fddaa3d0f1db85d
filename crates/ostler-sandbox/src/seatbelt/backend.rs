//! Starts programs with `sandbox-exec`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ostler_egress::bridge::{CONNECTIONS, serve};

use super::profile;
use crate::attestation::{Attestation, rlimits, without};
use crate::backend::{Backend, InsideCommand, Variables};
use crate::boundary::{Boundary, Network};
use crate::command::{Guard, SandboxedCommand};
use crate::error::SandboxError;
use crate::limits::Limits;
use crate::setup::Setup;

/// Never looked up by name: a file of a project must not replace it.
const PROGRAM: &str = "/usr/bin/sandbox-exec";
/// Enters the folder in `$0`, sets limits and becomes the rest.
const SHELL: &str = "/bin/sh";

/// Sandboxes of `sandbox-exec`.
#[derive(Debug)]
pub(crate) struct SeatbeltBackend {
    program: PathBuf,
    setup: Setup,
    /// The ports on which proxies are reached, by their sockets.
    ports: Mutex<BTreeMap<PathBuf, u16>>,
}

impl SeatbeltBackend {
    /// # Errors
    /// When `sandbox-exec` is missing, or this process is root.
    pub(crate) fn find(setup: Setup) -> Result<Self, SandboxError> {
        let program = Path::new(PROGRAM);
        if !program.is_file() {
            return Err(SandboxError::Unavailable(format!(
                "the sandbox of macOS cannot be used: {PROGRAM} does not exist. It is part of macOS; on Linux set \
                 sandbox.backend to \"bubblewrap\""
            )));
        }
        if rustix::process::geteuid().is_root() {
            return Err(SandboxError::Unavailable(
                "the sandbox of macOS cannot be used: this program runs as root, and programs inside would too. Start it as \
                 another user"
                    .to_owned(),
            ));
        }
        Ok(Self::with_program(program.to_owned(), setup))
    }

    pub(super) fn with_program(program: PathBuf, setup: Setup) -> Self {
        Self { program, setup, ports: Mutex::default() }
    }

    /// The port on which the proxy of a boundary is reached. Made once for each proxy.
    fn port(&self, boundary: &Boundary) -> Result<Option<u16>, SandboxError> {
        let Some(socket) = boundary.network.socket() else { return Ok(None) };
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(socket) {
            return Ok(Some(*port));
        }
        let port = bridge(socket).map_err(SandboxError::io(socket))?;
        ports.insert(socket.clone(), port);
        Ok(Some(port))
    }
}

/// Passes connections to a port of the loopback address on to a socket, as long as this process lives.
fn bridge(socket: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let socket = socket.to_owned();
    std::thread::Builder::new().spawn(move || serve(&listener, &socket, CONNECTIONS))?;
    Ok(port)
}

impl Backend for SeatbeltBackend {
    fn programs(&self) -> Vec<PathBuf> {
        // `sandbox-exec` belongs to the system, and no helper takes part.
        Vec::new()
    }

    fn attest(&self, boundary: &Boundary) -> Result<Attestation, SandboxError> {
        let mut missing = without(&boundary.limits, &NO_LIMITS, "macOS has no such limit")?;
        if self.setup.user_namespaces {
            return Err(SandboxError::Unavailable(
                "sandbox.allowNestedUserNamespaces cannot be enforced: macOS has no user namespaces. Remove it from the \
                 settings"
                    .to_owned(),
            ));
        }
        if boundary.network.socket().is_some() {
            missing.push(
                "the proxy for hosts has a port that other programs of this machine can reach too"
                    .to_owned(),
            );
        }
        profile::of(boundary, None)?;
        let mut protections = vec!["fs"];
        if boundary.network != Network::Host {
            protections.push("net");
        }
        let user = rustix::process::geteuid().as_raw();
        let mut attestation = Attestation::new(boundary, "seatbelt".to_owned(), protections, user);
        attestation.missing = missing;
        attestation.limits_by = rlimits(&boundary.limits);
        attestation.limits_by.retain(|name, _| !NO_LIMITS.contains(name));
        Ok(attestation)
    }

    fn command(
        &self,
        boundary: &Boundary,
        inside: &InsideCommand<'_>,
    ) -> Result<SandboxedCommand, SandboxError> {
        let profile = profile::of(boundary, self.port(boundary)?)?;
        let mut arguments: Vec<OsString> =
            vec!["-c".into(), script(&boundary.limits).into(), inside.folder.into()];
        arguments.extend([self.program.clone().into(), "-p".into(), profile.into()]);
        arguments.push(inside.program.into());
        arguments.extend_from_slice(inside.arguments);
        Ok(SandboxedCommand { program: SHELL.into(), arguments, guard: Guard::default() })
    }

    /// System programs ignore variables that name libraries, so nothing affects what builds the sandbox.
    fn variables(&self, boundary: &Boundary, mut inside: Variables) -> Variables {
        for mapped in &boundary.mapped {
            for value in inside.values_mut().filter(|value| *value == mapped.target.as_os_str()) {
                *value = mapped.source.clone().into();
            }
        }
        if let Ok(Some(port)) = self.port(boundary) {
            let variables = ostler_egress::variables(port).into_iter();
            inside.extend(variables.map(|(name, value)| (name.into(), value.into())));
        }
        inside
    }
}

/// Limits that macOS does not have for the processes of a sandbox.
const NO_LIMITS: [&str; 10] = [
    "processes",
    "memory",
    "temporary",
    "disk",
    "files",
    "session.processes",
    "session.memory",
    "session.cpuSeconds",
    "session.disk",
    "session.files",
];

/// The script of the shell that starts `sandbox-exec`.
fn script(limits: &Limits) -> String {
    let Limits { file_size, open_files, cpu_seconds, .. } = limits;
    // The unit of the shell is half a kilobyte.
    let blocks = file_size.map(|bytes| bytes.div_ceil(512));
    let mut script = "cd -- \"$0\" && ulimit -c 0".to_owned();
    for (option, most) in [('f', blocks), ('n', *open_files), ('t', *cpu_seconds)] {
        if let Some(most) = most {
            script.push_str(&format!(" && ulimit -{option} {most}"));
        }
    }
    script + " && exec \"$@\""
}
