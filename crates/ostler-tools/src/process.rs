//! A shell script in its own process group: its processes end with it.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::sandbox::Confinement;
use ostler_engine::tool::ToolError;
use ostler_process::{Confine, Environment, PipedCommand};
use tokio::process::{ChildStderr, ChildStdout};

/// Precedes every script: it starts only once it is watched. On the script's own first line, so that line numbers in
/// shell messages are right.
const GATE: &str = "read -r _ || exit; exec </dev/null; ";

/// Variables hidden from commands: this program's own keys. A header may contain a key.
const SECRETS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// How long a command may clean up after SIGTERM, and how long to wait for its last output.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The stdout and stderr of a script.
pub(crate) type Pipes = (ChildStdout, ChildStderr);

/// A running script with its processes.
pub(crate) struct Group(ostler_process::Group);

impl Group {
    /// Starts a shell script without input and with pipes for its output.
    pub(crate) async fn start(
        script: &str,
        cwd: &Path,
        env: &Arc<Environment>,
        confinement: &Confinement,
    ) -> io::Result<Self> {
        let Confinement::Inside { boundary, .. } = confinement else {
            return Self::spawn(script, cwd, env, None);
        };
        // Building a boundary looks at many files.
        let (script, cwd, env) = (script.to_owned(), cwd.to_owned(), Arc::clone(env));
        let boundary = Arc::clone(boundary);
        let spawn = move || Self::spawn(&script, &cwd, &env, Some(&*boundary));
        tokio::task::spawn_blocking(spawn).await.map_err(io::Error::other)?
    }

    fn spawn(
        script: &str,
        cwd: &Path,
        env: &Environment,
        boundary: Option<&dyn Confine>,
    ) -> io::Result<Self> {
        let mut environment = env.of_child();
        // The model may print its whole environment, and must not see the key.
        environment.retain(|name, _| !SECRETS.iter().any(|secret| name == secret));
        environment.insert("OSTLER".into(), "1".into());
        let script = format!("{GATE}{script}");
        let mut group = ostler_process::Group::spawn_piped(PipedCommand {
            program: ostler_process::shell().as_ref(),
            arguments: &["-c".as_ref(), script.as_ref()],
            folder: cwd,
            environment,
            boundary,
        })?;
        // A shell that found a syntax error has ended already, and reports it on stderr.
        let _ = group.open_gate();
        Ok(Self(group))
    }

    /// The pipes, once.
    pub(crate) fn pipes(&mut self) -> io::Result<Pipes> {
        let pipes = self.0.stdout().zip(self.0.stderr());
        pipes.ok_or_else(|| io::Error::other("the command has no pipes"))
    }

    /// Waits for the command itself. Cancel-safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Sends SIGTERM to the whole group.
    pub(crate) fn terminate(&self) {
        self.0.terminate();
    }

    /// Kills the whole group.
    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }
}

/// Why no command can be started in a folder.
pub(crate) fn cannot_run(folder: &Path, error: &io::Error) -> ToolError {
    let folder_is_gone = !folder.is_dir();
    ToolError::Failed(match folder_is_gone {
        true => format!("cannot run a command in {}: the folder is gone", folder.display()),
        false => format!("cannot run a command in {}: {error}", folder.display()),
    })
}

/// The exit code of a command.
pub(crate) fn code(status: ExitStatus) -> i32 {
    // As shells report it after a signal.
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}
