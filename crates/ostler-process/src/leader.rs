//! A running child: of a [`Command`], or of a [`PipedCommand`].

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;

use process_wrap::tokio::ChildWrapper;
use rustix::process::Pid;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::piped::PipedCommand;
#[cfg(target_os = "linux")]
use crate::session_leader::{self, SessionLeader};
use crate::spawn;

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

    /// `by_lasting_thread`: by a thread that lives as long as this process.
    pub(crate) fn of_piped(
        command: &PipedCommand<'_>,
        by_lasting_thread: bool,
    ) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(leader) = session_leader::spawn(command, by_lasting_thread) {
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
            Self::Piped(leader) => ChildStdin::from_std(leader.stdin()?.into()).ok(),
        }
    }

    /// The stdin for a text that is so short that no runtime is needed to write it.
    pub(crate) fn plain_stdin(&mut self) -> Option<OwnedFd> {
        match self {
            Self::Command(child) => child.stdin().take()?.into_owned_fd().ok(),
            #[cfg(target_os = "linux")]
            Self::Piped(leader) => leader.stdin(),
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
