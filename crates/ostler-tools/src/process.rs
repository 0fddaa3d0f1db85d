//! A command that takes along everything it started when it ends, when it is dropped, and when this process dies.
//!
//! It leads a session of its own, so it cannot ask at the user's terminal, and all it starts is in its process group
//! unless it takes pains to leave. A watchdog waits for the end of a pipe that only this process holds open: should
//! this process be killed, the watchdog kills the group. (The kernel's parent-death signal would reach the command
//! alone, not its children, and would fire when the *thread* that spawned it ends.)

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// Waits for its input to end, then kills the group it was told.
const WATCHDOG: &str = r#"read -r _; kill -s KILL -- "-$1""#;

/// Stands before every script: it begins only once it is watched. On the script's own first line, so that the shell's
/// messages name the lines that were written.
const GATE: &str = "read -r _ || exit; exec </dev/null; ";

/// A running command with all it started.
pub(crate) struct Group {
    leader: Box<dyn ChildWrapper>,
    id: Pid,
    /// Held for its input: the pipe that ends with this process.
    watchdog: Option<Child>,
    is_live: bool,
}

impl Group {
    /// Starts a shell script with nothing to read and with pipes for its output.
    pub(crate) async fn spawn(
        script: &str,
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let mut command = Command::new(shell());
        command.arg("-c").arg(format!("{GATE}{script}")).current_dir(cwd);
        command.envs(env).env("OSTLER", "1");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // The wrapper's own `wait` would block a thread until the whole group is gone: take the plain child out.
        let mut leader = CommandWrap::from(command).wrap(ProcessSession).spawn()?.into_inner();
        let gate = leader.stdin().take();
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("the command has no process id"))?;
        let mut group = Self { leader, id, watchdog: None, is_live: true };
        group.watchdog = Some(watchdog(id)?);
        if let Some(mut gate) = gate {
            // A shell that found its script malformed has gone already, and tells why on its error output.
            let _ = gate.write_all(b"\n").await;
        }
        Ok(group)
    }

    /// The pipes, once.
    pub(crate) fn pipes(&mut self) -> io::Result<(ChildStdout, ChildStderr)> {
        let pipes = self.leader.stdout().take().zip(self.leader.stderr().take());
        pipes.ok_or_else(|| io::Error::other("the command has no pipes"))
    }

    /// Waits for the command itself. Safe to drop and call again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Asks everything in the group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends everything in the group.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        // From here on the group's number may be given to somebody else.
        self.is_live = false;
        self.watchdog = None;
    }

    fn signal(&self, signal: Signal) {
        if self.is_live {
            // It fails when nobody is left, which is as well.
            let _ = killpg(self.id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn shell() -> &'static str {
    // By their full paths: what a project puts on PATH shall not stand in for the shell.
    let known = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|shell| Path::new(shell).exists());
    known.unwrap_or("/bin/sh")
}

fn watchdog(group: Pid) -> io::Result<Child> {
    // In a group of its own, or Ctrl-C at the terminal would end it.
    Command::new("/bin/sh")
        .args(["-c", WATCHDOG, "sh", &group.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}
