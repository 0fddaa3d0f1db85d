//! Signals: Ctrl-C, and requests to end.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{self, SignalKind};

/// A signal that the program received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// Ctrl-C: stop the current turn.
    Stop,
    /// End with this exit code.
    End(u8),
}

impl StopRequest {
    /// The exit code of a program that ends at once.
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Stop => STOPPED,
            Self::End(code) => code,
        })
    }
}

/// The exit code after Ctrl-C.
pub(crate) const STOPPED: u8 = 128 + 2;

/// The signals of this process from now on.
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) -> StopRequest {
        tokio::select! {
            _ = self.interrupt.recv() => StopRequest::Stop,
            _ = self.terminate.recv() => StopRequest::End(128 + 15),
            _ = self.hangup.recv() => StopRequest::End(128 + 1),
        }
    }
}
