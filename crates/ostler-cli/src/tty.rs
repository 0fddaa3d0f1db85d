//! The terminal as a device: how wide it is, and keys without waiting for Enter.

use std::io;

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
};

/// Keys come as they are pressed, and are not shown. Ends when dropped.
///
/// Ctrl-C stays a signal, and output is still processed, so nothing else needs to know of it. What was typed before
/// is thrown away: it was not meant for a question nobody had seen yet.
pub(crate) struct KeyMode {
    before: Termios,
}

impl KeyMode {
    pub(crate) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        keys.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IXON);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Whoever is suspended or killed in this mode leaves a terminal behind that does not echo.
        keys.special_codes[SpecialCodeIndex::VSUSP] = 0;
        keys.special_codes[SpecialCodeIndex::VQUIT] = 0;
        tcsetattr(&stdin, OptionalActions::Flush, &keys)?;
        Ok(Self { before })
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// How many columns standard output has, if it is a terminal that says so.
pub(crate) fn columns() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
