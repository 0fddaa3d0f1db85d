//! The sandbox around the agents of users other than the owner: the system keeps their programs from everything that is
//! not theirs, also from the owner's token.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler::Options;
use ostler::options::{SandboxFilesystem, SandboxNetwork, SandboxSettings};
use ostler_process::Confine;
use serde_json::Value;

use crate::config::{Config, EngineChoice, SandboxChoice};

/// Finds out whether members can be confined here, and stores that in the configuration.
///
/// # Errors
/// When a sandbox is required and is not available.
pub fn settle(config: &mut Config) -> Result<(), String> {
    if config.sandbox == SandboxChoice::Off {
        return Ok(());
    }
    let available = match &config.engine {
        EngineChoice::Embedded => ostler::engine::sandbox::availability(),
        EngineChoice::Program(_) => {
            Err("the engine is another program (--engine), which this server cannot confine"
                .to_owned())
        }
    };
    match available {
        Ok(backend) => {
            tracing::info!(%backend, "agents of users other than the owner run in a sandbox");
            config.sandbox = SandboxChoice::Required;
            Ok(())
        }
        Err(reason) if config.sandbox == SandboxChoice::Required => {
            Err(format!("a sandbox is required (--sandbox required): {reason}"))
        }
        Err(reason) => {
            tracing::info!(%reason, "there is no sandbox for users other than the owner");
            config.sandbox = SandboxChoice::Off;
            Ok(())
        }
    }
}

/// Puts the agent of a user other than the owner into a sandbox: it writes in its working directories only, sees neither
/// the server's data nor home directories, and cannot leave. What the operator's settings request comes on top.
pub(crate) fn put_around(options: &mut Options, config: &Config) {
    let mut sandbox = of_operator(options);
    sandbox.enabled = Some(true);
    sandbox.fail_if_unavailable = Some(true);
    sandbox.allow_unsandboxed_commands = Some(false);
    sandbox.enable_weaker_nested_sandbox = None;
    // The approvals of the server stay as they are.
    sandbox.auto_allow_bash_if_sandboxed.get_or_insert(false);
    // A command outside would run as the server's own user.
    sandbox.excluded_commands = None;
    let files = sandbox.filesystem.get_or_insert_with(SandboxFilesystem::default);
    files.disabled = None;
    files.allow_write = None;
    let hidden = std::iter::once(config.data.clone()).chain(config.secret_files());
    let hidden = hidden.map(|path| path.canonicalize().unwrap_or(path));
    files.deny_read.get_or_insert_default().extend(hidden.map(|path| path.display().to_string()));
    let network = sandbox.network.get_or_insert_with(SandboxNetwork::default);
    network.allow_all_unix_sockets = None;
    network.allow_unix_sockets = None;
    if !config.sandbox_domains.is_empty() {
        // The operator's list is complete: no answer of a member adds a host. Without it members are asked, about hosts that
        // the operator's settings do not deny.
        network.allowed_domains = Some(config.sandbox_domains.clone());
        network.strict_allowlist = Some(true);
    }
    options.context.sandbox = Some(sandbox);
}

/// The sandbox of a schedule's check: it writes in the agent's folder only, sees nothing of the server's data, and uses the
/// network.
pub(crate) fn around_check(
    folder: &Path,
    program: Option<PathBuf>,
    config: &Config,
) -> Result<Arc<dyn Confine>, String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let hidden = std::iter::once(config.data.clone()).chain(config.secret_files());
    let hidden: Vec<PathBuf> = hidden.map(|path| real(&path)).collect();
    let readable: Vec<PathBuf> = program.iter().map(|program| real(program)).collect();
    ostler::engine::sandbox::around_folder(&real(folder), hidden, readable)
}

/// The sandbox settings of the operator.
fn of_operator(options: &Options) -> SandboxSettings {
    let settings = options.context.settings.as_deref();
    let settings: Option<Value> = settings.and_then(|text| serde_json::from_str(text).ok());
    let sandbox = settings.and_then(|mut settings| Some(settings.get_mut("sandbox")?.take()));
    sandbox.and_then(|sandbox| serde_json::from_value(sandbox).ok()).unwrap_or_default()
}
