//! The sandbox of a session: what the settings request, what the policy adds, and what this machine enforces.

mod boundary;
mod hosts;
mod settings;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ostler_engine::permission::{DeniedPaths, Policy, RuleDomains, SandboxPolicy};
use ostler_engine::sandbox::{HostAsker, SessionSandbox};
use ostler_engine::scratch::Scratch;
use ostler_engine::settings::Settings;
use ostler_process::{Confine, Guard};
use ostler_proto::permission::PermissionMode;
use ostler_proto::sandbox::SandboxSettings;
use ostler_sandbox::{Boundary, Sandbox, Setup};
use serde_json::Value;

use self::hosts::{HostProxy, HostSettings};
use self::settings::SandboxRequest;
use super::{StartContext, StartError};

pub use ostler_sandbox::{run_if_called, use_helper};

/// The sandbox of a session.
#[derive(Debug)]
struct OwnSandbox {
    /// What this machine enforces, with the boundary before the policy adds to it.
    base: Sandbox,
    request: SandboxRequest,
    home: Option<PathBuf>,
    /// Private folders that commands see as `/tmp` and as their home. Removed with the session.
    folders: PrivateFolders,
    /// The last boundary, and what of the policy it was made of.
    last: Mutex<Option<(PolicyParts, Arc<Sandbox>)>>,
}

struct PrivateFolders {
    // Before the folder that its socket is in.
    proxy: HostProxy,
    temporary: PathBuf,
    home: PathBuf,
    _scratch: Scratch,
}

impl fmt::Debug for PrivateFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateFolders").field("temporary", &self.temporary).finish_non_exhaustive()
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

fn build(
    context: &StartContext,
    wanted: &SandboxSettings,
    policy: &mut Policy,
) -> Result<OwnSandbox, String> {
    let home = context.var("HOME").map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    let request = SandboxRequest::of(wanted, &context.cwd, home.as_deref())?;
    let parts = PolicyParts::of(policy, &request.hosts);
    let folders = PrivateFolders::new(&request.hosts, &parts.domains)?;
    let boundary = boundary::of(&request, &parts, home.as_deref(), &folders);
    let base = Sandbox::new(boundary, request.setup.clone()).map_err(|error| error.to_string())?;
    for protection in &request.required {
        match base.attestation().has(protection) {
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
    policy.sandbox = Some(SandboxPolicy {
        allows_commands: wanted.auto_allow_bash_if_sandboxed != Some(false),
        excluded: request.excluded.clone(),
    });
    Ok(OwnSandbox { base, request, home, folders, last: Mutex::default() })
}

impl PrivateFolders {
    /// Makes them, and starts the proxy.
    fn new(hosts: &HostSettings, domains: &RuleDomains) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("no temporary folder: {error}");
        let scratch = Scratch::default();
        let folder = scratch.folder().and_then(Path::canonicalize).map_err(failed)?;
        let (temporary, home) = (folder.join("tmp"), folder.join("home"));
        for folder in [&temporary, &home] {
            fs::create_dir(folder).map_err(failed)?;
        }
        let proxy = HostProxy::start(hosts.rules(domains), &folder.join("proxy/socket"))?;
        Ok(Self { proxy, temporary, home, _scratch: scratch })
    }
}

impl OwnSandbox {
    fn current(&self, policy: &Policy) -> Arc<Sandbox> {
        let parts = PolicyParts::of(policy, &self.request.hosts);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, sandbox)) if *of == parts => Arc::clone(sandbox),
            _ => {
                self.folders.proxy.set_rules(self.request.hosts.rules(&parts.domains));
                let boundary: Boundary =
                    boundary::of(&self.request, &parts, self.home.as_deref(), &self.folders);
                let sandbox = Arc::new(self.base.with(boundary));
                *last = Some((parts, Arc::clone(&sandbox)));
                sandbox
            }
        }
    }
}

impl SessionSandbox for OwnSandbox {
    fn boundary(&self, policy: &Policy) -> Result<Arc<dyn Confine>, String> {
        Ok(self.current(policy))
    }

    fn attestation(&self, policy: &Policy) -> Value {
        serde_json::to_value(self.current(policy).attestation()).unwrap_or_default()
    }

    fn ask_about_hosts(&self, asker: HostAsker) -> Option<Box<dyn Guard>> {
        Some(Box::new(self.folders.proxy.ask(asker)))
    }

    fn temporary(&self) -> &Path {
        &self.folders.temporary
    }

    fn hint(&self, output: &str, code: Option<i32>) -> Option<String> {
        let refused = self.folders.proxy.refused();
        let reason = match refused.is_empty() {
            true => self.base.reason_of_failure(output, code)?,
            false => format!("it could not reach {}", refused.join(", ")),
        };
        let way_out = match self.request.may_leave {
            true => {
                " If that was the cause and the command must run anyway, call it again with \
                     dangerouslyDisableSandbox: the user is asked."
            }
            false => "",
        };
        Some(format!("[This ran in a sandbox: {reason}.{way_out}]"))
    }
}
