//! A shell script in a process group of its own: whatever it starts ends with it.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use ostler_process::Environment;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStderr, ChildStdout};

/// Stands before every script: it begins only once it is watched. On the script's own first line, so that the shell's
/// messages name the lines that were written.
const GATE: &str = "read -r _ || exit; exec </dev/null; ";

/// What commands do not get to see: the keys this program itself uses. A header may be one.
const SECRETS: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"];

/// What a script writes: its output and its error output.
pub(crate) type Pipes = (ChildStdout, ChildStderr);

/// A running script with all it started.
pub(crate) struct Group(ostler_process::Group);

impl Group {
    /// Starts a shell script with nothing to read and with pipes for its output.
    pub(crate) async fn spawn(script: &str, cwd: &Path, env: &Environment) -> io::Result<Self> {
        let mut command = ostler_process::command(shell());
        command.arg("-c").arg(format!("{GATE}{script}")).current_dir(cwd);
        env.give_to(command.as_std_mut());
        // The model may print its whole environment, and the key is not for it to see.
        for secret in SECRETS {
            command.env_remove(secret);
        }
        command.env("OSTLER", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = ostler_process::Group::spawn(command)?;
        if let Some(mut gate) = group.stdin() {
            // A shell that found its script malformed has gone already, and tells why on its error output.
            let _ = gate.write_all(b"\n").await;
        }
        Ok(Self(group))
    }

    /// The pipes, once.
    pub(crate) fn pipes(&mut self) -> io::Result<Pipes> {
        let pipes = self.0.stdout().zip(self.0.stderr());
        pipes.ok_or_else(|| io::Error::other("the command has no pipes"))
    }

    /// Waits for the command itself. Safe to drop and call again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Asks everything in the group to end.
    pub(crate) fn terminate(&self) {
        self.0.terminate();
    }

    /// Ends everything in the group.
    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }
}

fn shell() -> &'static str {
    // By their full paths: what a project puts on PATH shall not stand in for the shell.
    let known = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|shell| Path::new(shell).exists());
    known.unwrap_or("/bin/sh")
}
