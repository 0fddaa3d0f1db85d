//! The part of a sandbox that runs as a process of its own: this program, started again with a first argument that
//! nothing else uses.

#[cfg(target_os = "linux")]
mod bridge;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(target_os = "linux")]
mod syscalls;

#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::boundary::{Layers, Limits};

/// Makes the program restrict itself and become another one.
pub(crate) const INNER: &str = "__sandbox-inner";
/// Makes the program, which runs as root, give up that and become another one.
pub(crate) const OUTER: &str = "__sandbox-outer";
/// Makes the program wait in a user namespace of its own until its input ends.
pub(crate) const NAMESPACE: &str = "__sandbox-namespace";
/// Makes the program pass connections on to the proxy.
pub(crate) const BRIDGE: &str = "__sandbox-bridge";
/// The exit code if the sandbox cannot be built; the reason is on stderr. Shells do not use it.
pub(crate) const FAILED: u8 = 199;
/// The prefix of the reason.
pub(crate) const COMPLAINT: &str = "ostler sandbox: ";

/// What the inner helper restricts itself to. Paths are as it sees them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InnerSpec {
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) layers: Layers,
    /// The working directory, if it is not set already.
    pub(crate) folder: Option<PathBuf>,
    /// The socket of the proxy, if hosts can be reached.
    pub(crate) proxy: Option<PathBuf>,
    pub(crate) unix_sockets: bool,
    pub(crate) user_namespaces: bool,
    pub(crate) limits: Limits,
}

/// What the outer helper prepares while it is still root.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OuterSpec {
    /// The user and group that it becomes.
    pub(crate) id: u32,
    /// Where it puts the trees; a folder that everybody can enter.
    pub(crate) stage: PathBuf,
    pub(crate) trees: Vec<Tree>,
}

/// A folder or file that appears as if it belonged to the user that the helper becomes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Tree {
    pub(crate) source: PathBuf,
    /// The user namespace that maps its owner, as a path in `/proc`.
    pub(crate) namespace: PathBuf,
}

/// The program to start as the helper.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The helper, if this program is one or another one was named.
pub(crate) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
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
            Some(NAMESPACE) => outer::wait_in_namespace(),
            Some(BRIDGE) => bridge::run(arguments),
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
                eprintln!("{COMPLAINT}{reason}");
                Some(ExitCode::from(FAILED))
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    None
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
