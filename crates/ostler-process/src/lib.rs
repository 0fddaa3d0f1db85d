//! Child processes that end together with everything they started: when they end, when they are dropped, and when
//! this process dies.
//!
//! The child leads its own session, so it cannot prompt at the user's terminal. Its descendants may leave that
//! session (`setsid`) and lose their parent (a double fork), so every child carries a marker in its environment that
//! all descendants inherit (`marker.rs`). Ending a child ends its group and everything with the marker, including
//! children of those (`members.rs`). If this process is killed, a watchdog does the same (`watchdog.rs`). (The
//! kernel's parent-death signal would reach only the child, not its children, and would fire when the *thread* that
//! spawned it ends.)
//!
//! While children run, their descendants are recorded (`tracking.rs`). A process that drops the marker from its
//! environment, starts its own session and loses its parent within a tenth of a second escapes, unless the program
//! has called [`adopt_orphans`]. `ostler` does.
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!(
    "ostler-process runs on Unix only (Linux, macOS): it relies on process groups, signals and file permissions. On Windows, use WSL"
);

mod children;
mod confine;
mod environment;
mod leader;
pub mod leftover;
mod marker;
mod members;
mod piped;
mod processes;
#[cfg(target_os = "linux")]
mod session_leader;
mod spawn;
pub mod sweep;
mod tracking;
#[cfg(target_os = "linux")]
pub mod usage;
mod watchdog;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

pub use self::confine::{Confine, ConfinedProgram, Guard, InsideProgram};
pub use self::environment::Environment;
use self::leader::Leader;
pub use self::piped::PipedCommand;
#[cfg(target_os = "linux")]
pub use self::session_leader::separate_working_directory;
pub use self::spawn::{command, shell};
pub use self::tracking::adopt_orphans;
#[doc(hidden)]
pub use self::tracking::look;
use self::watchdog::News;

/// What happens to a running child that is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDrop {
    /// It is killed at once.
    #[default]
    Kill,
    /// It gets SIGTERM, and SIGKILL after two seconds. For programs that end their own children.
    Terminate,
    /// Its input is closed; after two seconds it gets SIGTERM, after two more SIGKILL. For MCP servers.
    CloseInput,
}

/// A running child with everything it started.
#[derive(Debug)]
pub struct Group {
    leader: Leader,
    id: Pid,
    number: u64,
    /// When the child started; older processes do not belong to it.
    started: u64,
    on_drop: OnDrop,
    is_live: bool,
    /// What the boundary around it needs while it runs. Dropped last, after everything it started has been ended.
    guard: Option<Box<dyn Guard>>,
}

impl Group {
    /// Starts a command as the leader of its own group.
    ///
    /// # Errors
    /// If it cannot be started or watched.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        // Dropping ends it in our own way.
        command.kill_on_drop(false);
        let number = marker::next_number();
        let (name, value) = marker::of_new_child(number);
        command.env(name, value);
        Self::start(number, || Leader::of_command(command))
    }

    /// Starts a program with pipes as the leader of its own group. Costs less than [`Self::spawn`].
    ///
    /// # Errors
    /// If it cannot be started or watched.
    pub fn spawn_piped(mut command: PipedCommand<'_>) -> io::Result<Self> {
        let number = marker::next_number();
        let marker = marker::of_new_child(number);
        let Some(boundary) = command.boundary else {
            command.environment.extend([marker]);
            return Self::start(number, || Leader::of_piped(&command, false));
        };
        let PipedCommand { program, arguments, folder, environment, .. } = command;
        let inside = InsideProgram { program, arguments, folder, environment };
        let ConfinedProgram { program, arguments, mut environment, guard } =
            boundary.confine(inside)?;
        environment.extend([marker]);
        let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        let starter = PipedCommand {
            program: &program,
            arguments: &arguments,
            // The folder may exist only inside.
            folder: Path::new("/"),
            environment,
            boundary: None,
        };
        let mut group = Self::start(number, || Leader::of_piped(&starter, true))?;
        guard.started(group.id());
        group.guard = Some(guard);
        Ok(group)
    }

    fn start(number: u64, spawn: impl FnOnce() -> io::Result<Leader>) -> io::Result<Self> {
        watchdog::prepare()?;
        let (leader, id, started) = tracking::start(number, || {
            let leader = spawn()?;
            let id = leader.id().ok_or_else(|| io::Error::other("the child has no process id"))?;
            Ok((leader, id))
        })?;
        let on_drop = OnDrop::default();
        let group = Self { leader, id, number, started, on_drop, is_live: true, guard: None };
        watchdog::tell(id, number, News::Started)?;
        Ok(group)
    }

    /// Sets what happens if it is dropped while it runs; the default is to kill it.
    #[must_use]
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// The child's stdin, once, if it is a pipe.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.leader.stdin()
    }

    /// Writes a line break to the child's stdin and closes it, if it is a pipe that was not taken. Does not wait: an
    /// empty pipe has room for it.
    ///
    /// # Errors
    /// If the child has closed its end.
    pub fn open_gate(&mut self) -> io::Result<()> {
        match self.leader.plain_stdin() {
            Some(gate) => Ok(rustix::io::write(gate, b"\n").map(drop)?),
            None => Ok(()),
        }
    }

    /// The child's stdout, once, if it is a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout()
    }

    /// The child's stderr, once, if it is a pipe.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr()
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.id.as_raw_pid().unsigned_abs()
    }

    /// Waits for the child itself. Cancel-safe.
    ///
    /// # Errors
    /// If the system call fails.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Sends SIGTERM to the whole group.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGTERM to the child only. For programs that end their own children: a grandchild that is about to leave
    /// the group would otherwise end first, and the child would take that for the end of a command.
    pub fn terminate_leader(&self) {
        // Fails if the process is gone, which is fine.
        if self.is_live && self.leader.id().is_some() {
            let _ = kill_process(self.id, Signal::TERM);
        }
    }

    /// Kills the child and everything it started, also what has left the group.
    pub fn kill(&mut self) {
        if !self.is_live {
            return;
        }
        // First, while parents and children can still be matched.
        tracking::over(self.number);
        // Most commands leave nothing behind. To find that out is much cheaper than to look at all processes.
        let is_over = matches!(self.leader.try_wait(), Ok(Some(_)));
        if !is_over || !tracking::end_leftovers(self.number, self.id) {
            members::end(self.id, self.started, self.number);
        }
        self.signal(Signal::KILL);
        self.forget(News::Over);
    }

    /// Leaves the rest to the watchdog. From now on the group id may be reused by another process.
    fn forget(&mut self, news: News) {
        self.is_live = false;
        // Without a watchdog it was killed just now, or is killed when it is dropped.
        let _ = watchdog::tell(self.id, self.number, news);
    }

    fn signal(&self, signal: Signal) {
        if self.is_live {
            // Fails if the group is gone, which is fine, and if the child has no group yet.
            if kill_process_group(self.id, signal).is_err() && self.leader.id().is_some() {
                let _ = kill_process(self.id, signal);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let is_over = matches!(self.leader.try_wait(), Ok(Some(_)));
        match self.on_drop {
            // A boundary must not end before what runs inside.
            _ if self.guard.is_some() => self.kill(),
            OnDrop::Terminate if self.is_live && !is_over => {
                self.terminate_leader();
                self.forget(News::Terminate);
            }
            OnDrop::CloseInput if self.is_live && !is_over => {
                drop(self.stdin());
                self.forget(News::Close);
            }
            _ => self.kill(),
        }
        // Collects the exit status, which no one else does for a program with pipes.
        let _ = self.leader.try_wait();
        tracking::dropped(self.number);
    }
}
