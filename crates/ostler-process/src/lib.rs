//! A child process that takes along everything it started when it ends, when it is dropped, and when this process dies.
//!
//! The child leads a session of its own, so it cannot ask at the user's terminal, and all it starts is in its process
//! group unless it takes pains to leave. A watchdog waits for the end of a pipe that only this process holds open:
//! should this process be killed, the watchdog kills the group. It is there before the child, and told the group as
//! soon as there is one. (The kernel's parent-death signal would reach the
//! child alone, not its children, and would fire when the *thread* that spawned it ends.)
#![warn(missing_docs)]

mod environment;

use std::fs::File;
use std::io::{self, Write as _};
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

pub use self::environment::Environment;

/// Reads which group it is about, waits for its input to end, then kills that group.
const WATCHDOG: &str = r#"read -r group || exit; read -r _; kill -s KILL -- "-$group""#;

/// A running child with all it started.
#[derive(Debug)]
pub struct Group {
    leader: Box<dyn ChildWrapper>,
    id: Pid,
    watchdog: Option<Watchdog>,
    is_live: bool,
}

impl Group {
    /// Starts a command as the leader of a group of its own.
    ///
    /// # Errors
    /// When it cannot be started, or cannot be watched.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        command.kill_on_drop(true);
        let mut watchdog = Watchdog::new()?;
        // The wrapper's own `wait` would block a thread until the whole group is gone: take the plain child out.
        let leader = CommandWrap::from(command).wrap(ProcessSession).spawn()?.into_inner();
        let id = leader.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("the child has no process id"))?;
        let mut group = Self { leader, id, watchdog: None, is_live: true };
        if watchdog.watch(id).is_err() {
            // A signal for this process's group hit it before it had left that group.
            watchdog = Watchdog::new()?;
            watchdog.watch(id)?;
        }
        group.watchdog = Some(watchdog);
        Ok(group)
    }

    /// The child's input, once, if it is a pipe.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.leader.stdin().take()
    }

    /// The child's output, once, if it is a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout().take()
    }

    /// The child's error output, once, if it is a pipe.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr().take()
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.id.as_raw().unsigned_abs()
    }

    /// Waits for the child itself. Safe to drop and call again.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Asks everything in the group to end.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends everything in the group.
    pub fn kill(&mut self) {
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

/// The process that outlives this one for a moment. Ended before its input is, so that it does nothing in vain.
#[derive(Debug)]
struct Watchdog {
    _process: Child,
    /// The pipe that ends with this process.
    input: File,
}

impl Watchdog {
    fn new() -> io::Result<Self> {
        // In a group of its own, or Ctrl-C at the terminal would end it.
        let mut process = Command::new("/bin/sh")
            .args(["-c", WATCHDOG])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let input = process.stdin.take().ok_or_else(|| io::Error::other("it has no input"))?;
        Ok(Self { _process: process, input: File::from(input.into_owned_fd()?) })
    }

    fn watch(&mut self, group: Pid) -> io::Result<()> {
        writeln!(self.input, "{group}")
    }
}
