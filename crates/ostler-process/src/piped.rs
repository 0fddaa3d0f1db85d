//! A program with pipes on all sides, and the running child that comes of it or of a [`Command`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use process_wrap::tokio::ChildWrapper;
use rustix::process::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

#[cfg(target_os = "linux")]
use crate::session_leader::{self, SessionLeader};
use crate::spawn;

/// A program with pipes for its stdin, stdout and stderr: the cheapest child to start, for
/// [`Group::spawn_piped`](crate::Group::spawn_piped).
#[derive(Clone, Debug)]
pub struct PipedCommand<'a> {
    /// Its full path.
    pub program: &'a Path,
    /// Its arguments, without its name.
    pub arguments: &'a [&'a OsStr],
    /// Its working directory.
    pub folder: &'a Path,
    /// All of its variables.
    pub environment: BTreeMap<OsString, OsString>,
}

impl PipedCommand<'_> {
    fn to_command(&self) -> Command {
        let mut command = spawn::command(self.program);
        command.args(self.arguments).current_dir(self.folder);
        command.env_clear().envs(&self.environment).kill_on_drop(false);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A running child.
#[derive(Debug)]
pub(crate) enum Leader {
    Command(Box<dyn ChildWrapper>),
    #[cfg(target_os = "linux")]
    Piped(SessionLeader),
}

impl Leader {
    pub(crate) fn of_command(command: Command) -> io::Result<Self> {
        spawn::spawn(command).map(Self::Command)
    }

    pub(crate) fn of_piped(command: &PipedCommand<'_>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(leader) = session_leader::spawn(command) {
            return leader.map(Self::Piped);
        }
        Self::of_command(command.to_command())
    }

    /// Its process id, until it has been waited for.
    pub(crate) fn id(&self) -> Option<Pid> {
        match self {
            Self::Command(child) => {
                child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
            }
            #[cfg(target_os = "linux")]
            Self::Piped(leader) => (!leader.has_ended()).then(|| leader.id()),
        }
    }

    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Command(child) => child.wait().await,
            #[cfg(target_os = "linux")]
            Self::Piped(leader) => leader.wait().await,
        }
    }

    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Command(child) => child.try_wait(),
            #[cfg(target_os = "linux")]
            Self::Piped(leader) => leader.try_wait(),
        }
    }

    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        match self {
            Self::Command(child) => child.stdin().take(),
            #[cfg(target_os = "linux")]
            Self::Piped(leader) => leader.stdin.take(),
        }
    }

    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        match self {
            Self::Command(child) => child.stdout().take(),
            #[cfg(target_os = "linux")]
            Self::Piped(leader) => leader.stdout.take(),
        }
    }

    pub(crate) fn stderr(&mut self) -> Option<ChildStderr> {
        match self {
            Self::Command(child) => child.stderr().take(),
            #[cfg(target_os = "linux")]
            Self::Piped(leader) => leader.stderr.take(),
        }
    }
}
