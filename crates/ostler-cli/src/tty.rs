//! The terminal as a device: how wide it is, what becomes of what is typed.

use std::io;

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
};

/// A mode of the terminal other than the usual. Ends when dropped, however that comes about.
///
/// In all of them Ctrl-C is still a signal, and output is processed as usual, so nothing else needs to know of them.
#[must_use]
pub(crate) struct Mode {
    before: Termios,
    inside: Termios,
    leave: OptionalActions,
}

impl Mode {
    /// Keys come as they are pressed, and are not shown. What was typed before is thrown away: it was not meant for
    /// a question nobody had seen yet.
    pub(crate) fn keys() -> io::Result<Self> {
        Self::enter(OptionalActions::Flush, OptionalActions::Now, |mode| {
            mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
            mode.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
            mode.special_codes[SpecialCodeIndex::VMIN] = 1;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            // Whoever is suspended or killed in this mode leaves a terminal behind that does not echo.
            mode.special_codes[SpecialCodeIndex::VSUSP] = 0;
            mode.special_codes[SpecialCodeIndex::VQUIT] = 0;
        })
    }

    /// Keys come as they are pressed, and are shown by whoever takes them. What was typed before is kept.
    pub(crate) fn writing() -> io::Result<Self> {
        Self::enter(OptionalActions::Now, OptionalActions::Now, |mode| {
            mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
            mode.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
            mode.special_codes[SpecialCodeIndex::VMIN] = 1;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            mode.special_codes[SpecialCodeIndex::VQUIT] = 0;
        })
    }

    /// What is typed is not shown: it would end up in lines that are drawn again. A line that is not finished when
    /// this ends is thrown away, because nobody can see it.
    pub(crate) fn quiet() -> io::Result<Self> {
        Self::enter(OptionalActions::Now, OptionalActions::Flush, |mode| {
            mode.local_modes.remove(LocalModes::ECHO);
        })
    }

    /// What is typed is shown, also during [`Mode::quiet`].
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

    /// Enters it again, after somebody else had the terminal.
    pub(crate) fn resume(&self) -> io::Result<()> {
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &self.inside)?)
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _ = tcsetattr(io::stdin(), self.leave, &self.before);
    }
}

/// How many lines standard output has, if it is a terminal that says so.
pub(crate) fn rows() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// How many columns standard output has, if it is a terminal that says so.
pub(crate) fn columns() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
