//! The part of a sandbox that runs as a process of its own: this program, started again with a first argument that
//! nothing else uses.

#[cfg(target_os = "linux")]
mod bridge;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(target_os = "linux")]
mod small;
#[cfg(target_os = "linux")]
mod syscalls;

#[cfg(target_os = "linux")]
use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::io::Write as _;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
use ostler_process::sweep;

#[cfg(target_os = "linux")]
use crate::container;
#[cfg(target_os = "linux")]
use crate::control_group;
#[cfg(target_os = "linux")]
use crate::error::COMPLAINT;
#[cfg(target_os = "linux")]
use crate::mask;
#[cfg(target_os = "linux")]
use crate::spec::{BRIDGE, BUILD, FAILED, INNER, NAMESPACE, NETWORK, OUTER};

/// The program to start as the helper.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The helper, if this program is one or another one was named: a small one next to it, or itself.
#[cfg(target_os = "linux")]
pub(crate) fn program() -> Option<&'static Path> {
    static SMALL: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get()?;
    Some(SMALL.get_or_init(|| small::find(program)).as_ref().unwrap_or(program))
}

/// The programs that may be started as the helper.
#[cfg(target_os = "linux")]
pub(crate) fn programs() -> Vec<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path).into_iter().chain(program()).collect()
}

/// Uses another program as the helper, by its absolute path: `ostler`, or `ostler-sandbox-helper`. Has no effect if this
/// program is a helper itself.
pub fn use_helper(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

/// If the program was started as a helper: does that, and returns the exit code if it fails. Otherwise records that
/// the program can be the helper, and returns `None`. Call it first in `main`, before threads start and arguments are
/// parsed.
pub fn run_if_called() -> Option<ExitCode> {
    #[cfg(target_os = "linux")]
    {
        let mut arguments = std::env::args_os().skip(1);
        let what = arguments.next();
        let outcome = match what.as_deref().and_then(|what| what.to_str()) {
            Some(INNER) => inner::run(arguments),
            Some(OUTER) => outer::run(arguments),
            Some(NETWORK) => network::make(),
            Some(NAMESPACE) => outer::wait_in_namespace(),
            Some(BRIDGE) => bridge::run(arguments),
            Some(BUILD) => tell_build(),
            Some(sweep::ARGUMENT) => sweep_all(arguments),
            _ => {
                // The link leads to the file that runs, also if the program's name means another one by now.
                if let Ok(program) = std::fs::read_link("/proc/self/exe") {
                    use_helper(program);
                }
                return None;
            }
        };
        match outcome {
            Ok(()) => Some(ExitCode::SUCCESS),
            Err(reason) => {
                // If standard error is closed, the exit code still says that it failed.
                let _ = writeln!(std::io::stderr(), "{COMPLAINT}{reason}");
                Some(ExitCode::from(FAILED))
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Cleans up after a process that is gone. What is left is tried again by the next process.
#[cfg(target_os = "linux")]
fn sweep_all(all: impl Iterator<Item = OsString>) -> Result<(), String> {
    for what in all {
        let text = what.to_str().unwrap_or_default();
        // Folders are absolute paths, so no folder begins like this.
        if let Some(groups) = text.strip_prefix(control_group::TO_SWEEP) {
            control_group::sweep_groups(Path::new(groups))?;
        } else if let Some(containers) = text.strip_prefix(container::TO_SWEEP) {
            container::sweep_containers(containers)?;
        } else {
            mask::sweep_folder(Path::new(&what));
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn tell_build() -> Result<(), String> {
    let told = std::io::stdout().write_all(crate::spec::OF_THIS_BUILD.as_bytes());
    told.map_err(|error| format!("cannot report the build: {error}"))
}

/// Becomes another program. Returns only if that fails.
#[cfg(target_os = "linux")]
fn become_program(
    mut arguments: impl Iterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> String {
    use std::os::unix::process::CommandExt as _;
    let Some(program) = arguments.next() else { return "no program was given".to_owned() };
    let mut command = std::process::Command::new(&program);
    let error = command.args(arguments).env_clear().envs(environment).exec();
    format!("cannot start {}: {error}", program.display())
}

/// The specification in the first argument.
#[cfg(target_os = "linux")]
fn spec<T: serde::de::DeserializeOwned>(
    arguments: &mut impl Iterator<Item = OsString>,
) -> Result<T, String> {
    let text = arguments.next().ok_or("the specification is missing")?;
    let text = text.to_str().ok_or("the specification is not text")?;
    serde_json::from_str(text).map_err(|error| format!("invalid specification: {error}"))
}
