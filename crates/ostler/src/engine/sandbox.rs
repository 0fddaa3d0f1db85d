//! The sandbox of a session: what the settings request, what the policy adds, and what this machine enforces.

mod boundary;
mod escalation;
mod git_paths;
mod hosts;
mod limits;
mod program;
mod repositories;
mod settings;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::permission::{DeniedPaths, Policy, RuleDomains, SandboxPolicy};
use ostler_engine::sandbox::{HostAsker, ProgramBoundary, SessionSandbox};
use ostler_engine::scratch::Scratch;
use ostler_engine::settings::Settings;
use ostler_process::Confine;
use ostler_proto::permission::PermissionMode;
use ostler_proto::sandbox::SandboxSettings;
use ostler_sandbox::{Boundary, Sandbox, Setup};
use parking_lot::Mutex;
use serde_json::Value;

use self::hosts::{HostProxies, HostSettings};
use self::program::{SandboxedProgram, Shared};
use self::repositories::Repositories;
use self::settings::SandboxRequest;
use super::{StartContext, StartError};

pub use ostler_engine::sandbox::NETWORK_TOOL;
pub use ostler_sandbox::{Attestation, run_if_called, use_helper};

/// The sandbox of a session.
#[derive(Debug)]
struct OwnSandbox {
    /// What this machine enforces, with the boundary before the policy adds to it.
    base: Sandbox,
    request: SandboxRequest,
    home: Option<PathBuf>,
    /// Private folders that commands see as `/tmp` and as their home. Removed with the session.
    folders: PrivateFolders,
    /// Repositories below the working directories.
    repositories: Arc<Repositories>,
    /// The last boundary, and what of the policy it was made of.
    last: Mutex<Option<(PolicyParts, Arc<Sandbox>)>>,
}

struct PrivateFolders {
    // Before the folder that their sockets are in.
    proxies: Arc<HostProxies>,
    paths: PrivatePaths,
    _scratch: Scratch,
}

/// Paths of things that only this session's sandbox uses.
#[derive(Debug)]
struct PrivatePaths {
    /// The folder that commands see as `/tmp`.
    temporary: PathBuf,
    /// The folder that they see as their home.
    home: PathBuf,
    /// The socket of the proxy, in whose place each program gets its own.
    socket: PathBuf,
}

impl fmt::Debug for PrivateFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateFolders").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// What a boundary takes from a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PolicyParts {
    directories: Vec<PathBuf>,
    denied: DeniedPaths,
    domains: RuleDomains,
    /// Whether commands can reach any host.
    reaches_hosts: bool,
}

impl PolicyParts {
    fn of(policy: &Policy, hosts: &HostSettings) -> Self {
        let canonical = |path: &Path| path.canonicalize().ok();
        let directories = policy.working_directories().filter_map(canonical).collect();
        let domains = policy.rule_domains(hosts.strict);
        let asks = matches!(
            policy.effective_mode(),
            PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::Plan
        );
        let reaches_hosts = hosts.reach_any(&domains, asks);
        Self { directories, denied: policy.denied_paths(), domains, reaches_hosts }
    }
}

/// The program that builds sandboxes on this machine, with its version.
///
/// # Errors
/// Why there are none.
pub fn availability() -> Result<String, String> {
    let sandbox = Sandbox::new(Boundary::default(), Setup::default());
    sandbox.map(|it| it.attestation().backend.clone()).map_err(|error| error.to_string())
}

/// A boundary for a program that is not part of a session: it writes in one folder, except for what would run later, and in a
/// temporary folder of its own; it does not see what is hidden, and uses the network as without a sandbox. `readable` is seen
/// although it is hidden, or only for the user of this process.
///
/// # Errors
/// When this machine cannot enforce it.
pub fn around_folder(
    folder: &Path,
    hidden: Vec<PathBuf>,
    readable: Vec<PathBuf>,
) -> Result<Arc<dyn Confine>, String> {
    let mut boundary = Boundary::default();
    boundary.writable = vec![folder.to_owned()];
    boundary.protected = ostler_sandbox::usual::protected(folder);
    boundary.protected.extend(Repositories::default().protected(&boundary.writable));
    (boundary.hidden, boundary.readable) = (hidden, readable);
    boundary.network = ostler_sandbox::Network::Host;
    let sandbox = Sandbox::new(boundary, Setup::default());
    Ok(Arc::new(sandbox.map_err(|error| error.to_string())?))
}

/// The sandbox of a session at its start, for a program that several sessions share.
#[derive(Clone)]
pub(super) struct SandboxPlan {
    context: StartContext,
    wanted: SandboxSettings,
    policy: Policy,
}

impl SandboxPlan {
    /// `None` if the settings request no sandbox.
    pub(super) fn of(context: &StartContext, settings: &Settings, policy: &Policy) -> Option<Self> {
        let wanted = settings.sandbox.as_ref().filter(|it| it.enabled == Some(true))?;
        Some(Self { context: context.clone(), wanted: wanted.clone(), policy: policy.clone() })
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Equal only for sessions whose sandboxes enforce the same.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub(super) fn fingerprint(&self) -> Result<String, String> {
        let home = home(&self.context);
        let request = SandboxRequest::of(&self.wanted, &self.context.cwd, home.as_deref())?;
        let parts = PolicyParts::of(&self.policy, &request.hosts);
        // Rules and mode decide about hosts.
        let (mode, rules) = (self.policy.effective_mode(), self.policy.rules());
        Ok(format!("{request:?} {parts:?} {mode:?} {rules:?}"))
    }

    /// A sandbox with temporary folders of its own, so that the program does not see those of a session.
    ///
    /// # Errors
    /// When the boundary cannot be enforced.
    pub(super) fn build(&self) -> Result<Arc<dyn SessionSandbox>, String> {
        Ok(Arc::new(build(&self.context, &self.wanted, &mut self.policy.clone())?))
    }
}

/// A sandbox, or why a requested one is missing.
pub(super) type StartedSandbox = (Option<Arc<dyn SessionSandbox>>, Option<String>);

/// The sandbox that the settings request, and what changes in the policy with it. `None` if they request none, or if they
/// accept that there is none; then the text says why.
///
/// # Errors
/// When a sandbox was requested and is not available, or when a setting cannot be enforced.
pub(super) fn start(
    context: &StartContext,
    settings: &Settings,
    policy: &mut Policy,
) -> Result<StartedSandbox, StartError> {
    let Some(wanted) = settings.sandbox.as_ref().filter(|it| it.enabled == Some(true)) else {
        return Ok((None, None));
    };
    match build(context, wanted, policy) {
        Ok(sandbox) => Ok((Some(Arc::new(sandbox)), None)),
        Err(reason) if wanted.fail_if_unavailable == Some(false) => Ok((None, Some(reason))),
        Err(reason) => Err(StartError::Refused(format!(
            "a sandbox was requested (sandbox.enabled) and cannot be started: {reason}. To run commands without it, set \
             sandbox.failIfUnavailable to false or remove sandbox.enabled"
        ))),
    }
}

/// What the sandbox of a session would enforce for its commands, if the settings request one. The policy then decides as
/// it does with a sandbox.
///
/// # Errors
/// Why the sandbox could not be started.
pub fn preview(
    context: &StartContext,
    settings: &Settings,
    policy: &mut Policy,
) -> Result<Option<Attestation>, String> {
    let Some(wanted) = settings.sandbox.as_ref().filter(|it| it.enabled == Some(true)) else {
        return Ok(None);
    };
    let home = home(context);
    let request = SandboxRequest::of(wanted, &context.cwd, home.as_deref())?;
    let parts = PolicyParts::of(policy, &request.hosts);
    let folder = std::env::temp_dir();
    let paths = PrivatePaths { temporary: folder.clone(), home: folder.clone(), socket: folder };
    let boundary = boundary::of(&request, &parts, home.as_deref(), &paths);
    let sandbox = enforce(boundary, &request)?;
    policy.sandbox = Some(policy_of(wanted, &request));
    Ok(Some(sandbox.attestation().clone()))
}

/// The folders that commands in the sandbox of a session can write, if the settings request one.
pub(super) fn writable_folders(context: &StartContext, settings: &Settings) -> Vec<PathBuf> {
    let Some(wanted) = settings.sandbox.as_ref().filter(|it| it.enabled == Some(true)) else {
        return Vec::new();
    };
    let files = wanted.filesystem.clone().unwrap_or_default();
    let home = home(context);
    // An invalid path is reported when the sandbox starts.
    let allowed = files.allow_write.iter().flatten();
    let allowed =
        allowed.filter_map(|path| settings::absolute(path, &context.cwd, home.as_deref()).ok());
    let added = context.launch.add_dirs.iter().map(PathBuf::from);
    let added = added.chain(settings.directories.iter().map(|(folder, _)| folder.clone()));
    std::iter::once(context.cwd.clone())
        .chain(added.map(|folder| context.cwd.join(folder)))
        .chain(allowed)
        .collect()
}

fn home(context: &StartContext) -> Option<PathBuf> {
    context.var("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok())
}

fn build(
    context: &StartContext,
    wanted: &SandboxSettings,
    policy: &mut Policy,
) -> Result<OwnSandbox, String> {
    let home = home(context);
    let request = SandboxRequest::of(wanted, &context.cwd, home.as_deref())?;
    let parts = PolicyParts::of(policy, &request.hosts);
    if let (Some(_), Some(domain)) = (request.hosts.user_proxy, parts.domains.denied.first()) {
        return Err(format!(
            "the rule that denies WebFetch(domain:{domain}) cannot be enforced together with sandbox.network.httpProxyPort or \
             socksProxyPort, because your own proxy decides about hosts; remove the rule or the port"
        ));
    }
    let folders = PrivateFolders::new(&request.hosts)?;
    let boundary = boundary::of(&request, &parts, home.as_deref(), &folders.paths);
    let base = enforce(boundary, &request)?;
    policy.sandbox = Some(policy_of(wanted, &request));
    let repositories = Arc::default();
    Ok(OwnSandbox { base, request, home, folders, repositories, last: Mutex::default() })
}

fn policy_of(wanted: &SandboxSettings, request: &SandboxRequest) -> SandboxPolicy {
    SandboxPolicy {
        allows_commands: wanted.auto_allow_bash_if_sandboxed != Some(false),
        excluded: request.excluded.clone(),
    }
}

/// A sandbox with this boundary, which has every required protection.
fn enforce(boundary: Boundary, request: &SandboxRequest) -> Result<Sandbox, String> {
    let base = Sandbox::new(boundary, request.setup.clone()).map_err(|error| error.to_string())?;
    base.attestation().require(&request.required)?;
    Ok(base)
}

impl PrivateFolders {
    /// Makes them.
    fn new(hosts: &HostSettings) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("no temporary folder: {error}");
        let scratch = Scratch::default();
        let folder = scratch.folder().and_then(Path::canonicalize).map_err(failed)?;
        let (temporary, home) = (folder.join("tmp"), folder.join("home"));
        for folder in [&temporary, &home] {
            fs::create_dir(folder).map_err(failed)?;
        }
        let proxies = HostProxies::new(hosts.clone(), folder.join("proxy")).map_err(failed)?;
        let proxies = Arc::new(proxies);
        let socket = proxies.unused_socket().to_owned();
        let paths = PrivatePaths { temporary, home, socket };
        Ok(Self { proxies, paths, _scratch: scratch })
    }
}

impl OwnSandbox {
    fn current(&self, policy: &Policy) -> Result<Arc<Sandbox>, String> {
        let parts = PolicyParts::of(policy, &self.request.hosts);
        let mut last = self.last.lock();
        match &*last {
            Some((of, sandbox)) if *of == parts => Ok(Arc::clone(sandbox)),
            _ => {
                self.folders.proxies.renew_rules();
                let boundary: Boundary =
                    boundary::of(&self.request, &parts, self.home.as_deref(), &self.folders.paths);
                let sandbox = self.base.with(boundary).map_err(|error| error.to_string())?;
                let sandbox = Arc::new(sandbox);
                *last = Some((parts, Arc::clone(&sandbox)));
                Ok(sandbox)
            }
        }
    }
}

impl SessionSandbox for OwnSandbox {
    fn boundary(&self, asker: Arc<dyn HostAsker>) -> Result<Arc<dyn ProgramBoundary>, String> {
        let sandbox = self.current(&asker.policy())?;
        let shared = Shared {
            proxies: Arc::clone(&self.folders.proxies),
            repositories: Arc::clone(&self.repositories),
        };
        let may_leave = self.request.may_leave;
        Ok(Arc::new(SandboxedProgram::new(sandbox, asker, shared, may_leave)))
    }

    fn attestation(&self, policy: &Policy) -> Value {
        let sandbox = match self.current(policy) {
            Ok(sandbox) => sandbox,
            // Then nothing is started.
            Err(reason) => return serde_json::json!({"missing": [reason]}),
        };
        let mut attestation = sandbox.attestation().clone();
        self.repositories.attest(&sandbox, &mut attestation);
        serde_json::to_value(attestation).unwrap_or_default()
    }

    fn temporary(&self) -> &Path {
        &self.folders.paths.temporary
    }
}
