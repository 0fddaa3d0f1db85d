//! The terminal device: its size, and its input modes.

use std::io;

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
};

/// A mode of the terminal other than the normal one. Dropping this always restores the normal mode.
///
/// In all modes Ctrl-C is still a signal and output is processed normally, so other code need not know about them.
#[must_use]
pub(crate) struct Mode {
    before: Termios,
    inside: Termios,
    leave: OptionalActions,
}

impl Mode {
    /// Delivers keys as they are pressed, without echo. Discards keys typed before: they were not meant for a question
    /// that the user had not seen yet.
    pub(crate) fn keys() -> io::Result<Self> {
        Self::enter(OptionalActions::Flush, OptionalActions::Now, |mode| {
            mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
            mode.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
            mode.special_codes[SpecialCodeIndex::VMIN] = 1;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            // If the program is suspended or killed in this mode, the terminal stays without echo.
            mode.special_codes[SpecialCodeIndex::VSUSP] = 0;
            mode.special_codes[SpecialCodeIndex::VQUIT] = 0;
        })
    }

    /// Delivers keys as they are pressed; the reader shows them. Keeps keys typed before.
    pub(crate) fn writing() -> io::Result<Self> {
        Self::enter(OptionalActions::Now, OptionalActions::Now, |mode| {
            mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
            mode.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
            mode.special_codes[SpecialCodeIndex::VMIN] = 1;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            mode.special_codes[SpecialCodeIndex::VQUIT] = 0;
        })
    }

    /// Switches echo off, because typed text would end up in lines that are redrawn. Discards an unfinished line at the
    /// end, because the user cannot see it.
    pub(crate) fn quiet() -> io::Result<Self> {
        Self::enter(OptionalActions::Now, OptionalActions::Flush, |mode| {
            mode.local_modes.remove(LocalModes::ECHO);
        })
    }

    /// Switches echo on, also during [`Mode::quiet`].
    pub(crate) fn shown() -> io::Result<Self> {
        Self::enter(OptionalActions::Now, OptionalActions::Now, |mode| {
            mode.local_modes.insert(LocalModes::ECHO);
        })
    }

    fn enter(
        how: OptionalActions,
        leave: OptionalActions,
        change: impl FnOnce(&mut Termios),
    ) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut mode = before.clone();
        change(&mut mode);
        tcsetattr(io::stdin(), how, &mode)?;
        Ok(Self { before, inside: mode, leave })
    }

    /// Enters the mode again after another program had the terminal.
    pub(crate) fn resume(&self) -> io::Result<()> {
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &self.inside)?)
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        // Ignore a closed terminal.
        let _ = tcsetattr(io::stdin(), self.leave, &self.before);
    }
}

/// The height of standard output in lines, if it is a terminal that reports it.
pub(crate) fn rows() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// The width of standard output in columns, if it is a terminal that reports it.
pub(crate) fn columns() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
